// Package version has the versions of plugins and the constraints by which
// people choose among them.
//
// Two grammars meet here. Tags and annotations carry one [Version] each; a
// reference, a config file or a lock carries a [Constraint]. The runner's own
// grammar (latest, 1, 1.2, 1.2.3, 1.2.3-rc.1) is a subset of the constraints, and
// for that subset [Constraint.Match] gives what the runner gives.
//
// The package does not know registries, tags that float, or where a version is
// stored. It imports the standard library only.
package version
