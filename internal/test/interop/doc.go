// Package interop has tests that compare the finished commands with other
// people's: what fleeting-plugin publishes is given to cosign 2 and 3, what
// they sign is given to fleeting-plugin. They need the sigstore lab that package
// siglab drives, and run with the build tag interop (`make interop`). The
// libraries' own comparisons lie beside them, in packager/internal/signer and
// installer/internal/trust, under the same tag.
package interop
