//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubelet is a kubelet without an API server: it runs the Pods whose files lie in
// a folder.
type kubelet struct {
	l   *lab
	dir string
}

const (
	// kubeletAddress is one of its own, on which the usual ports are free.
	kubeletAddress = "127.0.0.94"
	// nodeName ends the names of Pods that come from files.
	nodeName = "e2e"
)

// kubeletConf turns off what an unprivileged machine without systemd lacks.
const kubeletConf = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
healthzBindAddress: %[1]s
port: 10250
healthzPort: 10248
readOnlyPort: 10255
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://%[2]s
staticPodPath: %[3]s/static
podLogsDir: %[3]s/logs
volumePluginDir: %[3]s/plugins
resolvConf: ""
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
localStorageCapacityIsolation: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 10Mi}
fileCheckFrequency: 1s
syncFrequency: 2s
`

// buildKubelet builds the kubelet, which is to call itself by its release.
func (l *lab) buildKubelet(t *testing.T) {
	stamp := "-X k8s.io/component-base/version.gitVersion=v" + required(t, "kube", "k8s.io/kubernetes")
	build(t, "kube", l.binaries(), "-ldflags=-s -w "+stamp, kubeletCommand)
}

// newKubelet starts a kubelet on a runtime.
func newKubelet(t *testing.T, l *lab, r *runtime) *kubelet {
	t.Helper()
	k := &kubelet{l: l, dir: filepath.Join(l.dir, "kubelet")}
	for _, dir := range []string{"static", "logs", "plugins"} {
		if err := os.MkdirAll(filepath.Join(k.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(k.dir, "config.yaml")
	writeFile(t, file, fmt.Sprintf(kubeletConf, kubeletAddress, r.socket, k.dir))
	restoreHost(t, k.dir)
	serve(t, filepath.Join(k.dir, "log"), filepath.Join(l.binaries(), "kubelet"), "--config", file,
		"--root-dir", filepath.Join(k.dir, "root"), "--cert-dir", filepath.Join(k.dir, "pki"), "--hostname-override", nodeName)
	await(t, "kubelet", func() bool {
		_, err := k.pods(t)
		return err == nil
	})
	return k
}

// restoreHost undoes what a kubelet does outside of its folders: it sets what
// the kernel does when memory is short and when it fails, and links logs.
func restoreHost(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		file := filepath.Join("/proc/sys", name)
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			now, err := os.ReadFile(file)
			if err == nil && !bytes.Equal(now, before) {
				err = os.WriteFile(file, before, 0o644)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		links, err := filepath.Glob("/var/log/containers/*.log")
		for _, link := range links {
			if target, _ := os.Readlink(link); strings.HasPrefix(target, dir+"/") {
				err = errors.Join(err, os.Remove(link))
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// podList is what we read of the kubelet's answer, a v1.PodList.
type podList struct {
	Items []struct {
		Metadata struct{ Name, UID string }
		Status   struct {
			Phase                                    string
			InitContainerStatuses, ContainerStatuses []struct {
				Name  string
				State struct {
					Waiting    *struct{ Reason, Message string }
					Terminated *struct{ ExitCode int }
				}
			}
		}
	}
}

// pods asks the read-only port.
func (k *kubelet) pods(t *testing.T) (podList, error) {
	t.Helper()
	var pods podList
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+kubeletAddress+":10255/pods", nil)
	if err != nil {
		return pods, err
	}
	answer, err := (&http.Client{Timeout: lastWords}).Do(request)
	if err != nil {
		return pods, err
	}
	defer func() { _ = answer.Body.Close() }()
	return pods, json.NewDecoder(answer.Body).Decode(&pods)
}

// outcome is how a Pod ended, or why it did not start.
type outcome struct {
	phase, waiting, logs string
}

// run has the kubelet run a Pod until it has ended, or until one of its
// containers waits for a reason that awaiting names.
func (k *kubelet) run(t *testing.T, objects []object, name, awaiting string) outcome {
	t.Helper()
	file := filepath.Join(k.dir, "static", name+".json")
	// Renamed into place: the kubelet reads what it sees.
	writeFile(t, filepath.Join(k.dir, name), encode(t, k.withoutAPI(t, objects, name)))
	if err := os.Rename(filepath.Join(k.dir, name), file); err != nil {
		t.Fatal(err)
	}
	var found outcome
	await(t, "Pod "+name, func() bool {
		pods, err := k.pods(t)
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			if pod.Metadata.Name != name+"-"+nodeName {
				continue
			}
			found.phase = pod.Status.Phase
			for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
				if waiting := status.State.Waiting; waiting != nil && awaiting != "" && waiting.Reason == awaiting {
					found.waiting = waiting.Message
				}
			}
		}
		return found.phase == "Succeeded" || found.phase == "Failed" || found.waiting != ""
	})
	logs, err := filepath.Glob(filepath.Join(k.dir, "logs", "*_"+name+"-"+nodeName+"_*", "*", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range logs {
		found.logs += criLog(t, log)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	await(t, "removal of Pod "+name, func() bool {
		pods, err := k.pods(t)
		return err == nil && len(pods.Items) == 0
	})
	return found
}

// withoutAPI has a Pod take its ConfigMaps and Secrets from folders: one that
// comes from a file must name no object of an API server.
func (k *kubelet) withoutAPI(t *testing.T, objects []object, name string) []object {
	t.Helper()
	files := map[string]object{"gitlab-runner": k.l.runnerFiles(t)}
	var pod object
	for _, one := range objects {
		switch one["kind"] {
		case "Pod":
			pod = one
		case "ConfigMap":
			files[at[string](t, one, "metadata", "name")] = at[object](t, one, "data")
		}
	}
	for _, one := range at[[]any](t, pod, "spec", "volumes") {
		volume := at[object](t, object{"volume": one}, "volume")
		var from string
		switch {
		case volume["secret"] != nil:
			from = at[string](t, volume, "secret", "secretName")
			delete(volume, "secret")
		case volume["configMap"] != nil:
			from = at[string](t, volume, "configMap", "name")
			delete(volume, "configMap")
		default:
			continue
		}
		dir := filepath.Join(k.dir, "files", name, from)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, content := range files[from] {
			writeFile(t, filepath.Join(dir, file), fmt.Sprint(content))
		}
		volume["hostPath"] = object{"path": dir, "type": "Directory"}
	}
	return []object{pod}
}

// testKubelet has a kubelet run the Pods of the documentation.
func testKubelet(t *testing.T, l *lab, r *runtime) {
	software := "kubelet " + required(t, "kube", "k8s.io/kubernetes") + ", containerd " + required(t, "containerd", "github.com/containerd/containerd/v2")
	l.report.check(t, software, "build", l.buildKubelet)
	k := newKubelet(t, l, r)
	for _, s := range shapes() {
		for _, user := range []int{0, arbitrary} {
			what, name := "Pod of "+s.file+".yaml", s.file
			if user != 0 {
				what, name = what+" as an arbitrary user", name+"-arbitrary"
			}
			l.report.check(t, software, what, func(t *testing.T) {
				objects := l.trust(t, l.manifest(t, s.file+".yaml"), l.publicKey)
				ended := k.run(t, l.pod(t, objects, name, user), name, "")
				if ended.phase != "Succeeded" {
					t.Fatalf("the Pod %s:\n%s", ended.phase, ended.logs)
				}
				served(t, ended.logs, l.openstack, architectures()[0])
			})
		}
	}
	l.report.check(t, software, "Pod of verifying-init-container.yaml refuses another signer", func(t *testing.T) {
		_, stranger := newSigner(t)
		objects := l.trust(t, l.manifest(t, "verifying-init-container.yaml"), stranger)
		ended := k.run(t, l.pod(t, objects, "refused", 0), "refused", "")
		if ended.phase != "Failed" || strings.Contains(ended.logs, "SERVED") || !strings.Contains(ended.logs, "sign") {
			t.Errorf("the Pod %s:\n%s", ended.phase, ended.logs)
		}
		t.Log(ended.logs)
	})
	l.report.check(t, software, "Pod of init-container.yaml without a digest does not start", func(t *testing.T) {
		ended := k.run(t, l.pod(t, documented(t, "init-container.yaml"), "placeholder", 0), "placeholder", "InvalidImageName")
		if !strings.Contains(ended.waiting, placeholder) {
			t.Errorf("the Pod is %+v", ended)
		}
		t.Log(ended.waiting)
	})
}
