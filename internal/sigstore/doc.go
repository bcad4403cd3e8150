// Package sigstore verifies a signature and what sigstore's services prove about
// it: certificates of Fulcio, promises of certificate logs, entries of Rekor's
// logs (version 1 and 2) and signed timestamps (RFC 3161).
//
// It judges each proof by itself, with the trust material that the caller names.
// It chooses no policy: which signer is required and which proofs are enough is
// the caller's decision. It contacts nothing.
//
// sigstore-go's verify and cosign's packages do the same and serve as oracles in
// the tests. They are not linked because they bring Rekor's client and server
// types: 250 packages that no verification uses.
package sigstore
