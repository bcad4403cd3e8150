// Package rehearsal rehearses a release: it runs .github/workflows/release.yml, as
// package actions reads it, from a tag to the release that GitHub shows. Every step
// is the workflow's own, in its order and with the defaults of release.mk. Only the
// hosts and identities differ: ghcr.io, github.com and its API, and the services of
// the public sigstore are names of services on loopback.
//
// The rehearsal loses machines, runs jobs again and breaks the workflow, and asks
// both cosigns and gh about what was published. It also publishes with the GitHub
// Action, with the GitLab component and from docs/template.
//
// Its test carries the build tag rehearsal and is run by
// `make release-rehearsal`; see package siglab for what it needs. The package
// holds no code outside of tests.
//
// What it cannot show: the login of ghcr.io is Basic here and not a token service,
// and GitHub's rules for tags, environments and packages are not asked.
package rehearsal
