// Package packager publishes plugins for GitLab Runner's fleeting: it turns
// executables, one per platform, into an OCI artifact, and puts that into a
// registry together with its bills of materials, signatures and provenance.
//
// The steps are [dist.Scan], which finds and checks the executables, [Pack], which
// writes an OCI image layout without any network, [Push], which copies the
// layout to a registry and moves the tags, [Sign] and [Attest]. [Release] does
// all of them, and [Inspect] shows what is published.
//
// The same executables, version and time give the same bytes everywhere: files
// are sorted, owned by 0:0, with mode 0755 or 0644 and the one time given;
// layers are tar streams compressed by klauspost/compress/gzip at level 4, with
// an empty gzip header. A published version never changes, and the aliases
// ("1.2", "1", "latest") only move forward.
//
// The package neither builds executables nor installs or verifies artifacts. It
// prints nothing, reads no environment variable and asks no clock: all that
// comes in through options.
package packager
