// Package signer makes signatures and attestations of artifacts, with a key or
// keyless, in both forms that verifiers look for: cosign's layers under the
// tags `.sig` and `.att`, and sigstore bundles.
//
// It talks to sigstore's services where that is asked for (Fulcio, Rekor, a
// timestamp authority), each at a given URL, and to nothing else: it pushes
// nothing and never contacts a TUF repository. It is the only importer of
// sigstore on the signing side.
package signer
