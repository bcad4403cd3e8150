// Package artifact is the format of a published fleeting plugin: media types,
// annotations, platforms, and the canonical bytes of configs, manifests and
// indexes, both written and read.
//
// It does no input or output: bytes go in and come out. Where they come from
// and go to is the business of the registry and layout packages. It neither
// verifies signatures nor picks versions.
//
// The format is an OCI image index with one image manifest per platform, so
// that the same bytes are a package for the runner's installer and an image
// for container runtimes. See the OCI image specification v1.1.1,
// https://github.com/opencontainers/image-spec/blob/v1.1.1/spec.md.
package artifact
