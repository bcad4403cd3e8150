//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// shape is one of the ways in which a Pod of the documentation gets the plugin.
type shape struct {
	file       string
	containers []string
}

func shapes() []shape {
	return []shape{
		{"init-container", []string{"fleeting-plugin", "gitlab-runner"}},
		{"verifying-init-container", []string{"fleeting-plugin", "gitlab-runner"}},
		{"image-volume", []string{"gitlab-runner"}},
	}
}

// arbitrary is a user as OpenShift chooses them.
const arbitrary = 1000660000

// criConf is containerd's configuration: folders of its own, our registry
// without TLS, our sandbox image, and nothing that an unprivileged machine
// lacks.
const criConf = `version = 3
root = %[1]q
state = %[2]q
[grpc]
address = %[3]q
[plugins.'io.containerd.nri.v1.nri']
disable = true
[plugins.'io.containerd.cri.v1.images']
snapshotter = "overlayfs"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = %[4]q
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = %[5]q
[plugins.'io.containerd.cri.v1.runtime']
disable_apparmor = true
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
runtime_path = %[6]q
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
Root = %[7]q
`

// oldConf is the same for containerd 1.
const oldConf = `version = 2
root = %[1]q
state = %[2]q
[grpc]
address = %[3]q
[plugins.'io.containerd.grpc.v1.cri']
sandbox_image = %[4]q
disable_apparmor = true
restrict_oom_score_adj = true
[plugins.'io.containerd.grpc.v1.cri'.registry]
config_path = %[5]q
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
Root = %[7]q
`

// runtime is a containerd that serves CRI.
type runtime struct {
	l      *lab
	socket string
	runpod string
	pods   int
}

// buildRuntime builds containerd and its shim.
func (l *lab) buildRuntime(t *testing.T) {
	build(t, "containerd", l.binaries(), "-tags", withoutDrivers, "-ldflags=-s -w", shimCommand, containerdCommand)
}

// binaries is where built software is.
func (l *lab) binaries() string { return filepath.Join(l.dir, "bin") }

// newRuntime starts a containerd with folders of its own.
func newRuntime(t *testing.T, l *lab, name, executable, conf string) *runtime {
	t.Helper()
	build(t, "containerd", l.binaries(), "-ldflags=-s -w", runpodCommand)
	dir := filepath.Join(l.dir, name)
	hosts := filepath.Join(dir, "hosts", l.registry.Host)
	if err := os.MkdirAll(hosts, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(hosts, "hosts.toml"), fmt.Sprintf("[host.%q]\n", "http://"+l.registry.Host))
	r := &runtime{l: l, socket: filepath.Join(dir, "sock"), runpod: filepath.Join(l.binaries(), "runpod")}
	file := filepath.Join(dir, "config.toml")
	writeFile(t, file, fmt.Sprintf(conf, filepath.Join(dir, "root"), filepath.Join(dir, "state"), r.socket, l.sandbox(t),
		filepath.Join(dir, "hosts"), filepath.Join(l.binaries(), "containerd-shim-runc-v2"), filepath.Join(l.dir, "runc", name)))
	serve(t, filepath.Join(dir, "log"), executable, "--config", file)
	await(t, name, func() bool {
		_, _, err := try(t, nil, "ctr", "--address", r.socket, "version")
		return err == nil
	})
	t.Cleanup(func() { // before containerd ends
		if err := sweepContainers(l.dir); err != nil {
			t.Error(err)
		}
	})
	return r
}

// sandbox makes the image of a Pod's sandbox: Debian's catatonit, which waits
// and reaps.
func (l *lab) sandbox(t *testing.T) string {
	t.Helper()
	const executable = "/usr/bin/catatonit"
	reference, err := name.ParseReference(l.registry.Host+"/pause:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image := imageOf(t, architectures()[0], executable, "pause", "/pause", "-P")
	if err := remote.Write(reference, image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	return reference.String()
}

// run runs a Pod to its end and returns what its containers wrote.
func (r *runtime) run(t *testing.T, objects []object, containers ...string) (logs string, err error) {
	t.Helper()
	r.pods++
	dir := filepath.Join(r.l.dir, "pods", filepath.Base(filepath.Dir(r.socket)), fmt.Sprint(r.pods))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "gitlab-runner"}, "data": r.l.runnerFiles(t)}
	file := filepath.Join(dir, "objects.json")
	writeFile(t, file, encode(t, append(objects, secret)))
	_, out, err := try(t, nil, r.runpod, "-socket", r.socket, "-dir", dir, file)
	logs = out
	for _, container := range containers {
		logs += criLog(t, filepath.Join(dir, "logs", container))
	}
	return logs, err
}

// encode writes objects one after the other.
func encode(t *testing.T, objects []object) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, one := range objects {
		if err := encoder.Encode(one); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

// criLog is what a container wrote, from a file in which each line says when,
// where to, and whether the line goes on.
func criLog(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		return "" // the container was not started
	}
	var text strings.Builder
	for line := range strings.Lines(string(raw)) {
		fields := strings.SplitN(line, " ", 4)
		if len(fields) != 4 {
			t.Fatalf("%s has the line %q", file, line)
		}
		content := fields[3]
		if fields[2] == "P" {
			content = strings.TrimSuffix(content, "\n")
		}
		text.WriteString(content)
	}
	return text.String()
}

// testCRI has a containerd of today run the Pods of the documentation, with the
// requests that a kubelet sends.
func testCRI(t *testing.T, l *lab) {
	software := "containerd " + required(t, "containerd", "github.com/containerd/containerd/v2") + " by CRI, runc " + version(t, "runc", "--version")
	l.report.check(t, software, "build", l.buildRuntime)
	r := newRuntime(t, l, "cri", filepath.Join(l.binaries(), "containerd"), criConf)
	for _, s := range shapes() {
		for _, user := range []int{0, arbitrary} {
			what := "Pod of " + s.file + ".yaml"
			if user != 0 {
				what += " as an arbitrary user"
			}
			l.report.check(t, software, what, func(t *testing.T) {
				objects := l.trust(t, l.manifest(t, s.file+".yaml"), l.publicKey)
				logs, err := r.run(t, l.pod(t, objects, s.file, user), s.containers...)
				if err != nil {
					t.Fatalf("%v\n%s", err, logs)
				}
				served(t, logs, l.openstack, architectures()[0])
			})
		}
	}
	l.report.check(t, software, "Pod of verifying-init-container.yaml refuses another signer", func(t *testing.T) {
		_, stranger := newSigner(t)
		objects := l.trust(t, l.manifest(t, "verifying-init-container.yaml"), stranger)
		logs, err := r.run(t, l.pod(t, objects, "refused", 0), "fleeting-plugin", "gitlab-runner")
		mustHaveRefused(t, logs, err)
	})
	if os.Getenv("E2E_KUBELET") != "" {
		t.Run("kubelet", func(t *testing.T) { testKubelet(t, l, r) })
	}
}

// testOldRuntime holds the guide's words on nodes that know no image volumes
// against such a node.
func testOldRuntime(t *testing.T, l *lab) {
	release := version(t, "ctr", "--version")
	if !strings.HasPrefix(release, "1.") {
		t.Logf("the distribution's containerd is %s, and not one without image volumes", release)
		return
	}
	software := "containerd " + release + " by CRI"
	r := newRuntime(t, l, "old", "containerd", oldConf)
	l.report.check(t, software, "Pod of init-container.yaml", func(t *testing.T) {
		logs, err := r.run(t, l.pod(t, l.manifest(t, "init-container.yaml"), "init", 0), "fleeting-plugin", "gitlab-runner")
		if err != nil {
			t.Fatalf("%v\n%s", err, logs)
		}
		served(t, logs, l.openstack, architectures()[0])
	})
	l.report.check(t, software, "Pod of image-volume.yaml is refused as the guide says", func(t *testing.T) {
		logs, err := r.run(t, l.pod(t, l.manifest(t, "image-volume.yaml"), "volume", 0), "gitlab-runner")
		if err == nil || !strings.Contains(logs, oldRefusal) || strings.Contains(logs, "SERVED") {
			t.Errorf("got %v, want %q:\n%s", err, oldRefusal, logs)
		}
		guide, err := os.ReadFile(filepath.Join(docs, "guides", "kubernetes.md"))
		if err != nil || !strings.Contains(string(guide), oldRefusal) {
			t.Errorf("the guide does not say %q: %v", oldRefusal, err)
		}
	})
}

// oldRefusal is how containerd 1 answers an image volume.
const oldRefusal = `failed to generate spec: failed to mkdir "": mkdir : no such file or directory`

// refusal is the exit code of fleeting-plugin for what it does not trust.
const refusal = 3

// mustHaveRefused wants the verifying container to have ended the Pod.
func mustHaveRefused(t *testing.T, logs string, err error) {
	t.Helper()
	if strings.Contains(logs, "SERVED") || !strings.Contains(logs, fmt.Sprintf(`"name":"fleeting-plugin","code":%d,`, refusal)) || !strings.Contains(logs, "sign") {
		t.Errorf("the Pod ended with %v:\n%s", err, logs)
	}
	t.Log(logs)
}
