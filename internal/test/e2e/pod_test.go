//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	docs = "../../../docs"
	// documentedOwner is where the documentation's images are.
	documentedOwner = "ghcr.io/" + owner + "/"
	documentedRun   = "registry.gitlab.com/gitlab-org/gitlab-runner:alpine-v19.3.0"
	// placeholder stands for a release's digest. No reference may hold it, so
	// nobody deploys it by mistake.
	placeholder = "sha256:DIGEST"
)

// object is a Kubernetes object, as its YAML has it.
type object = map[string]any

// manifest reads a file of docs/kubernetes with the images that it names taken
// from the lab: the host, the digests, and the stand-in in place of the runner.
func (l *lab) manifest(t *testing.T, name string) []object {
	t.Helper()
	text := strings.ReplaceAll(l.pinned(l.local(documentation(t, name))), documentedRun, l.guest)
	if strings.Contains(text, placeholder) || strings.Contains(text, "ghcr.io") {
		t.Fatalf("%s names images that the lab has not:\n%s", name, text)
	}
	return objectsOf(t, text)
}

// pinned has the digests of the lab's images in place of what stands for them.
func (l *lab) pinned(text string) string {
	for _, image := range []published{l.openstack, l.tool} {
		text = strings.ReplaceAll(text, image.reference()+"@"+placeholder, image.reference()+"@"+image.digest.String())
	}
	return text
}

// documented is a file of docs/kubernetes as it is.
func documented(t *testing.T, name string) []object {
	t.Helper()
	return objectsOf(t, documentation(t, name))
}

func documentation(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(docs, "kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func objectsOf(t *testing.T, text string) []object {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var objects []object
	for {
		var one object
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, one)
	}
}

func (l *lab) local(text string) string {
	return strings.ReplaceAll(text, documentedOwner, l.registry.Host+"/"+owner+"/")
}

// secretFiles are what the guide makes the runner's Secret of, but the key.
func secretFiles() []string { return []string{"config.toml", "clouds.yaml", "cloud-init.yaml"} }

// runnerFiles are the runner's Secret. The runner's stand-in logs in nowhere, so
// it does not mind what the key is.
func (l *lab) runnerFiles(t *testing.T) object {
	t.Helper()
	files := object{"id_ed25519": string(l.publicKey)}
	for _, name := range secretFiles() {
		files[name] = l.local(documentation(t, name))
	}
	return files
}

// pod turns a manifest into what can run to its end without the API server: the StatefulSet's Pod
// alone, once, on the host's network, where the registry is. user runs it as
// another user, as OpenShift does.
func (l *lab) pod(t *testing.T, objects []object, name string, user int) []object {
	t.Helper()
	var out []object
	for _, one := range objects {
		if one["kind"] != "StatefulSet" {
			out = append(out, one)
			continue
		}
		spec := at[object](t, one, "spec", "template", "spec")
		spec["restartPolicy"], spec["hostNetwork"] = "Never", true
		if user != 0 {
			security := at[object](t, spec, "securityContext")
			security["runAsUser"] = user
			delete(security, "runAsGroup")
			delete(security, "fsGroup")
		}
		runner := at[object](t, object{"first": at[[]any](t, spec, "containers")[0]}, "first")
		runner["env"] = append(at[[]any](t, runner, "env"),
			object{"name": "E2E_CONFIG", "value": "/etc/gitlab-runner/config.toml"}, object{"name": "E2E_READ_ONLY", "value": "1"})
		for _, key := range []string{"args", "ports", "readinessProbe", "livenessProbe"} {
			delete(runner, key) // the runner's, not the stand-in's
		}
		out = append(out, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name}, "spec": spec})
	}
	return out
}

// at walks down an object.
func at[T any](t *testing.T, in any, path ...string) T {
	t.Helper()
	for _, key := range path {
		within, _ := in.(object)
		in = within[key]
	}
	out, ok := in.(T)
	if !ok {
		t.Fatalf("no %T at %v", out, path)
	}
	return out
}

// play runs objects with podman's reading of Kubernetes' YAML, and returns what
// the Pod's containers wrote.
func (p *podman) play(t *testing.T, objects []object, name string, containers ...string) (logs string, code string) {
	t.Helper()
	// This podman mounts no Secrets: the same files, as a ConfigMap.
	objects = append(objects, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "gitlab-runner"}, "data": p.l.runnerFiles(t)})
	var text bytes.Buffer
	for _, one := range objects {
		encoded, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		encoded = bytes.ReplaceAll(encoded, []byte(`"secret":{`), []byte(`"configMap":{`))
		encoded = bytes.ReplaceAll(encoded, []byte(`"secretName":`), []byte(`"name":`))
		fmt.Fprintf(&text, "---\n%s\n", encoded)
	}
	file := filepath.Join(t.TempDir(), "pod.yaml")
	writeFile(t, file, text.String())
	_, out, err := try(t, p.env, "podman", p.args("play", "kube", file)...)
	t.Cleanup(func() {
		if out, err := quiet(p.env, "podman", p.args("play", "kube", "--down", file)...); err != nil {
			t.Errorf("taking the Pod down: %v\n%s", err, out)
		}
	})
	logs, code = out, "init failed"
	for _, container := range containers { // following ends with the container; a failed one may be gone
		_, log, _ := try(t, p.env, "podman", p.args("logs", "--follow", name+"-"+container)...)
		logs += log
	}
	if err == nil {
		code = strings.TrimSpace(p.run(t, "wait", name+"-gitlab-runner"))
	}
	return logs, code
}

func testPods(t *testing.T, l *lab) {
	p := newPodman(t, l)
	software := "podman " + version(t, "podman", "--version") + " play kube"
	for _, shape := range []string{"init-container", "verifying-init-container"} {
		for _, user := range []int{0, arbitrary} {
			name := fmt.Sprintf("%s-%d", shape, user)
			what := "Pod of " + shape + ".yaml"
			if user != 0 {
				what += " as an arbitrary user"
			}
			l.report.check(t, software, what, func(t *testing.T) {
				objects := l.trust(t, l.manifest(t, shape+".yaml"), l.publicKey)
				logs, code := p.play(t, l.pod(t, objects, name, user), name, "fleeting-plugin", "gitlab-runner")
				if code != "0" {
					t.Fatalf("the runner's container ended with %s:\n%s", code, logs)
				}
				served(t, logs, l.openstack, architectures()[0])
			})
		}
	}
	l.report.check(t, software, "Pod of verifying-init-container.yaml refuses another signer", func(t *testing.T) {
		_, stranger := newSigner(t)
		objects := l.trust(t, l.manifest(t, "verifying-init-container.yaml"), stranger)
		logs, code := p.play(t, l.pod(t, objects, "refused", 0), "refused", "fleeting-plugin", "gitlab-runner")
		if code == "0" || strings.Contains(logs, "SERVED") || !strings.Contains(logs, "sign") {
			t.Errorf("the Pod ended with %s:\n%s", code, logs)
		}
		t.Log(logs)
	})
}

// trust puts the lab's key into the policy in place of the release workflow's
// identity, which cannot sign here.
func (l *lab) trust(t *testing.T, objects []object, key []byte) []object {
	t.Helper()
	for _, one := range objects {
		if one["kind"] == "ConfigMap" {
			at[object](t, one, "data")["policy.toml"] = l.policy(key)
		}
	}
	return objects
}

// policy trusts a key for our plugin.
func (l *lab) policy(key []byte) string {
	return fmt.Sprintf("version = 1\n[[rule]]\nscope = %q\n[[rule.key]]\npem = '''\n%s'''\n", l.openstack.image, key)
}
