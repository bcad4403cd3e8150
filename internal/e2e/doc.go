// Package e2e runs what we publish in the container software that people use:
// the plugin's image in podman, containerd and Kubernetes Pods, on amd64 and,
// through qemu, on arm64; in umoci and skopeo; and what arrives is started and
// spoken to over gRPC with fleeting's own client.
//
// The tests carry the build tag e2e, need root, and install the Debian packages
// that they lack; `make e2e` runs them. What speaks to the Kubernetes API's own
// code is in a module of its own, internal/e2e/kube, so that Kubernetes is no
// dependency of ours.
//
// The package holds no code outside of tests.
package e2e
