// Package rehearsal takes the steps of a release, the very targets of the
// Makefile that .github/workflows/release.yml calls, against a registry and a
// sigstore on loopback: build on two "machines", compare, publish keyless, attest
// what is shown beside the registry, install and check by a policy, and ask both
// cosigns and gh.
//
// Its test carries the build tag rehearsal and is run by
// `make release-rehearsal`; see package siglab for what it needs. The package
// holds no code outside of tests.
package rehearsal
