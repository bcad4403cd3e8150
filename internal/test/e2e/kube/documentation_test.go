package kube_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// docs is the documentation, from here.
const docs = "../../../../docs"

// least is how many objects there are at least: a search that finds nothing
// must not pass.
const least = 5

// TestDocumentationIsValid applies every YAML file of the documentation and
// every YAML block in its pages.
func TestDocumentationIsValid(t *testing.T) {
	t.Parallel()
	objects := 0
	for name, content := range yamlOf(t) {
		for _, document := range split(t, content) {
			made, err := translate(name, document)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, one := range made {
				objects++
				for _, problem := range apply(one) {
					t.Errorf("%s: %s", name, problem)
				}
			}
		}
	}
	if objects < least {
		t.Errorf("found %d objects, want at least %d", objects, least)
	}
	t.Logf("%d objects", objects)
}

// TestImagesArePinned wants a digest in every reference to our images, or what
// stands for one until a release is pinned, which no node may take for a name.
func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	found := 0
	for name, content := range yamlOf(t) {
		for line := range strings.Lines(string(content)) {
			key, value, ok := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "- "), ": ")
			if !ok || (key != "image" && key != "reference") || !strings.HasPrefix(value, "ghcr.io/radome-io/") {
				continue
			}
			found++
			if err := pinned(value); err != nil {
				t.Errorf("%s: %s: %v", name, value, err)
			}
		}
	}
	if found < least {
		t.Errorf("found %d images of ours, want at least %d", found, least)
	}
	for image, want := range map[string]bool{
		"ghcr.io/radome-io/x:1@sha256:" + strings.Repeat("1a", 32): true,
		"ghcr.io/radome-io/x:1@sha256:DIGEST":                      true,
		"ghcr.io/radome-io/x:1@sha256:digest":                      false,
		"ghcr.io/radome-io/x:1@sha256:" + strings.Repeat("00", 32): false,
		"ghcr.io/radome-io/x:1":                                    false,
		"ghcr.io/radome-io/x":                                      false,
	} {
		if err := pinned(image); (err == nil) != want {
			t.Errorf("%s: %v", image, err)
		}
	}
}

// placeholder stands for a digest in the documentation.
const placeholder = "@sha256:DIGEST"

// pinned parses an image's name as a kubelet does.
func pinned(image string) error {
	parsed, err := reference.ParseNormalizedNamed(image)
	switch open := strings.HasSuffix(image, placeholder); {
	case open && err == nil:
		return errors.New("a node takes this name")
	case open: // nothing runs by this name, as it should be
		return nil
	case err != nil:
		return err
	}
	digested, ok := parsed.(reference.Digested)
	if !ok {
		return errors.New("no digest")
	}
	if strings.Trim(digested.Digest().Encoded(), "0") == "" {
		return errors.New("nothing has this digest")
	}
	return nil
}

// TestMistakesAreFound breaks the manifests and wants it noticed, each time in
// the words of the API server.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, file, old, replacement, want string }{
		{"misspelt field", "init-container.yaml", "volumeMounts:", "volumeMount:", `unknown field "spec.template.spec.`},
		{"unknown volume", "init-container.yaml", "{name: fleeting-plugins, mountPath", "{name: plugins, mountPath", `.name: Not found: "plugins"`},
		{"relative mount", "init-container.yaml", "mountPath: /plugins", "mountPath: \"\"", ".mountPath: Required value"},
		{"duplicate key", "init-container.yaml", "runAsNonRoot: true", "runAsNonRoot: true\n        runAsNonRoot: true", `already set in map`},
		{"quantity", "init-container.yaml", "sizeLimit: 256Mi", "sizeLimit: 256MB", "quantities must match"},
		{"selector", "init-container.yaml", "matchLabels: {app: gitlab-runner}", "matchLabels: {app: runner}", "`selector` does not match template `labels`"},
		{"policy", "init-container.yaml", "podManagementPolicy: Parallel", "podManagementPolicy: AtOnce", `spec.podManagementPolicy: Invalid value:`},
		{"strategy", "values.yaml", "type: Recreate", "type: Replace", `spec.strategy: Unsupported value:`},
		{"root", "init-container.yaml", "runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot"},
		{"privilege", "init-container.yaml", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "allowPrivilegeEscalation"},
		{"capabilities", "init-container.yaml", "drop: [ALL]", "drop: [NET_RAW]", "unrestricted capabilities"},
		{"no seccomp profile", "verifying-init-container.yaml", "seccompProfile: {type: RuntimeDefault}", "", "seccompProfile"},
		{"host path", "verifying-init-container.yaml", "emptyDir: {sizeLimit: 256Mi}", "hostPath: {path: /plugins}", "restricted volume types"},
		{"pull policy", "image-volume.yaml", "pullPolicy: IfNotPresent", "pullPolicy: Sometimes", `pullPolicy: Unsupported value: "Sometimes"`},
		{"sub path", "image-volume.yaml", "subPath: plugin", "subPath: ../plugin", "must not contain '..'"},
		{"a quota's word in the budget", "disruption-budget.yaml", "maxUnavailable: 0", "maxUnavailable: none", "maxUnavailable"},
		{"a port of the policy", "network-policy.yaml", "port: 9252", "port: 92520", "port"},
		{"a network of the policy", "network-policy.yaml", "cidr: 10.0.0.0/8", "cidr: 10.0.0.0", "cidr"},
		{"an access mode of the patch", "writable-config.yaml", "ReadWriteOncePod", "ReadWriteOnePod", "accessModes"},
		{"misspelt reference", "image-volume.yaml", "reference:", "ref:", `unknown field "spec.template.spec.volumes[0].image.ref"`},
		{"another field of the chart", "values.yaml", "volumeMounts:", "volumesMount:", "unknown field"},
		{"another field below", "values.yaml", "  executor:", "  executors:", "unknown field"},
		{"another name than the chart's", "values.yaml", "name: config", "name: configmaps", `Duplicate value: "configmaps"`},
		{"another field of the operator", "openshift-runner.yaml", "podSpec:", "podSpecs:", "unknown field"},
		{"another field of its patch", "openshift-runner.yaml", "initContainers:", "initContainer:", "unknown field"},
		{"another container than the operator's", "openshift-runner.yaml", "- name: runner", "- name: gitlab-runner", "spec.template.spec.containers[0].image: Required value"},
		{"strategy with what is left of the other", "openshift-runner.yaml", "          $retainKeys: [type]\n", "", "spec.strategy.rollingUpdate: Forbidden"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			good, err := os.ReadFile(filepath.Join(docs, "kubernetes", test.file))
			if err != nil {
				t.Fatal(err)
			}
			broken := strings.ReplaceAll(string(good), test.old, test.replacement)
			if broken == string(good) {
				t.Fatalf("%s has no %q", test.file, test.old)
			}
			var found []string
			for _, document := range split(t, []byte(broken)) {
				made, err := translate(test.file, document)
				if err != nil {
					found = append(found, err.Error())
				}
				for _, one := range made {
					found = append(found, apply(one)...)
				}
			}
			if all := strings.Join(found, "\n"); !strings.Contains(all, test.want) {
				t.Errorf("found %q, want %q", all, test.want)
			}
		})
	}
}

// TestObjectsAreRefused has mistakes that the documentation leaves no room for.
func TestObjectsAreRefused(t *testing.T) {
	t.Parallel()
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n" +
		"  securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}\n"
	const container = "{name: a, image: x, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}"
	for name, test := range map[string]struct{ manifest, want string }{
		"no container":                     {pod + "  containers: []\n", "spec.containers: Required value"},
		"image volume without a reference": {pod + "  containers: [" + container + "]\n  volumes: [{name: v, image: {pullPolicy: Always}}]\n", "spec.volumes[0].image.reference: Required value"},
		"another kind":                     {"apiVersion: v1\nkind: Service\nmetadata: {name: s}\n", "nothing here validates *v1.Service"},
		"no kind":                          {"apiVersion: v1\nmetadata: {name: s}\n", "'Kind' is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if all := strings.Join(apply([]byte(test.manifest)), "\n"); !strings.Contains(all, test.want) {
				t.Errorf("found %q, want %q", all, test.want)
			}
		})
	}
	if found := apply([]byte(pod + "  containers: [" + container + "]\n")); found != nil {
		t.Errorf("the Pod without a mistake: %v", found)
	}
}

// TestImageVolumesTurnedOff has an API server that knows image volumes, but has
// them turned off: it drops the volume's source before it validates.
func TestImageVolumesTurnedOff(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(docs, "kubernetes", "image-volume.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	object, err := decode(content)
	if err != nil {
		t.Fatal(err)
	}
	set, ok := object.(*appsv1.StatefulSet)
	if !ok {
		t.Fatalf("found %T", object)
	}
	for i := range set.Spec.Template.Spec.Volumes {
		set.Spec.Template.Spec.Volumes[i].Image = nil
	}
	const want = "spec.template.spec.volumes[0]: Required value: must specify a volume type"
	if all := strings.Join(validateStatefulSet(set), "\n"); !strings.Contains(all, want) {
		t.Errorf("found %q, want %q", all, want)
	}
}

// rendered is an environment variable, and the name of the file that it names:
// what `helm template` made of our values. With it, the chart itself is held to
// what render says that it does.
const rendered = "E2E_RENDERED"

// yamlOf returns the YAML files below docs and the YAML blocks in its pages, by
// name, and what is rendered.
func yamlOf(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(docs, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch filepath.Ext(path) {
		case ".yaml", ".yml":
			found[path], err = os.ReadFile(path)
		case ".md":
			var page []byte
			page, err = os.ReadFile(path)
			for i, block := range strings.Split(string(page), "\n```yaml\n") {
				if text, _, closed := strings.Cut(block, "\n```"); i > 0 && closed {
					found[path+"#"+string(rune('0'+i))] = []byte(text)
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv(rendered); file != "" {
		if found[rendered], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func split(t *testing.T, content []byte) [][]byte {
	t.Helper()
	var documents [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
}
