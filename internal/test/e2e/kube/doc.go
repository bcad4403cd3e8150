// Package kube holds the manifests of our documentation against the code of the
// Kubernetes API server: strict decoding, defaults and validation, and the
// restricted Pod Security standard. It has a module of its own, so that nothing
// else of ours depends on Kubernetes, and holds nothing but tests.
package kube
