// Package ociregistry reads and writes artifacts in OCI registries and in OCI
// layout folders, with one set of methods for both: Repository and Layout.
//
// It is the only importer of oras-go. It adds what the callers rely on: every
// byte is checked against its descriptor, every listing is bounded, transient
// failures are retried, interrupted downloads resume, stalled ones are cut,
// and errors fall into a few kinds. It knows nothing of plugins, platforms,
// versions or signatures.
//
// It follows the OCI distribution specification v1.1.1,
// https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md.
package ociregistry
