// Package trusttest makes evidence for tests: signatures and attestations by
// keys made on the spot, in cosign's legacy form and as sigstore bundles, and a
// fixture of samples made by real cosign against a real private sigstore.
//
// It builds the bytes itself, so that a test that needs a signature does not
// compile cosign, and so that the packages under test are not checked against
// themselves. It verifies nothing. Only tests import it.
//
//go:generate go run ./fixtures
package trusttest
