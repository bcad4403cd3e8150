// Package sbom turns the build information inside a Go executable into a
// software bill of materials, written as SPDX 2.3 or CycloneDX 1.6 JSON.
//
// What is listed comes from the executable itself (the same facts that
// "go version -m" prints), so nothing has to be kept beside it: the main module,
// every module that was linked in with its version and checksum, the Go
// toolchain and the build settings. The same input gives the same bytes.
//
// The package does not scan folders, lock files or container images, does not
// look for vulnerabilities, and knows nothing of registries.
package sbom
