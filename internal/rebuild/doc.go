// Package rebuild builds published executables again from their source and says
// whether the result is the same, byte by byte, and if not, why.
//
// A Go executable says how it was built: which package, which Go version, which
// settings. [Recipe] is that, as far as it can be repeated without running code
// of the source: cgo, tools of the source and linker flags that start programs
// are refused, and must be asked for with [Options]. Where the source comes from
// is an [Origin], read from a SLSA provenance. What is not written in Go is
// built by a command that the caller gives.
//
// [Run] takes all steps for a reference: the installer fetches and verifies it,
// so that what is compared with is what the publisher signed. The package itself
// verifies no signature and talks to no registry. It starts the go command, git,
// and the caller's command.
package rebuild
