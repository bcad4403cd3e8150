// Package e2e runs what we publish in the container software that people use:
// the plugin's image in podman and containerd, on amd64 and, through qemu, on
// arm64; in umoci and skopeo; the documentation's Pods in podman, by CRI on a
// containerd of today and on one without image volumes, and under a kubelet.
// What arrives is started and spoken to over gRPC with fleeting's own client. And
// GitLab Runner, as far as its module can be had, installs the plugin and runs jobs
// of a GitLab that we play on a simulated cloud, as the tutorial has it.
//
// The tests carry the build tag e2e, need root, and install the Debian packages
// that they lack; `make e2e` runs them. They build a containerd, a runner, and with
// KUBELET=1 a kubelet, from modules of their own, so that none is a dependency of
// ours: internal/test/e2e/containerd, which also has the client of CRI,
// internal/test/e2e/runner, which says what that runner lacks, and internal/test/e2e/kube,
// which also holds all manifests against the code of the Kubernetes API server.
// However the tests end, they leave nothing running, mounted or set.
//
// The package holds no code outside of tests.
package e2e
