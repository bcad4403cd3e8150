// Package trust decides whether bytes that claim to vouch for an artifact do so.
//
// It verifies evidence that the caller has already fetched: cosign's simple
// signing payloads and DSSE attestations as they lie under the tags `.sig` and
// `.att`, and sigstore bundles as they lie behind referrers; signed with a key
// or with a short-lived certificate; proved in time by a transparency log
// (Rekor v1, Rekor v2), by a signed timestamp (RFC 3161), or by both.
//
// What is required comes first, as a [Requirement], and cannot be left out:
// its zero value refuses everything. A [Verified] value is made by a successful
// verification only.
//
// The package contacts nothing: no registry, no log, no TUF repository. It does
// not fetch evidence, does not choose a policy, and does not look inside
// predicates. The proofs of a signature are verified by internal/sigstore.
package trust
