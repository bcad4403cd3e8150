// Package installer installs plugins for GitLab Runner's fleeting from OCI
// registries, after it has verified them.
//
// Most programs need four calls:
//
//	ref, err := installer.ParseReference("registry.example.com/team/plugin:1.2")
//	policy, err := installer.ReadPolicy("/etc/gitlab-runner/fleeting-policy.toml")
//	i, err := installer.New(policy, installer.WithFolder(dir))
//	installed, err := i.Ensure(ctx, ref, installer.InstallOptions{})
//
// # Steps
//
// Each step can be taken alone:
//
//	resolution, err := i.Resolve(ctx, ref) // which version, which digests
//	verified, err := i.Verify(ctx, ref)    // and does the policy allow it
//	installed, err := i.InstallVerified(ctx, verified, installer.InstallOptions{})
//	path, err := i.Folder().LookPath(ref)  // no network
//
// The methods, in the order in which a plugin meets them:
//
//   - [Installer.Resolve] looks up the tag, once. From then on there are only
//     digests.
//   - [Installer.Verify] checks signatures and attestations before any layer is
//     downloaded. Only it makes a [Verified], and nothing else can be installed.
//   - [Installer.Install] is both and writes the plugin where the runner looks for
//     plugins, with a [Receipt] beside it. [Installer.Ensure] does without a
//     registry if the version is installed.
//   - [Installer.Lock] chooses and verifies for all platforms, and returns a [Lock].
//     [Installer.InstallLocked] installs exactly what a lock says.
//   - [Installer.Outdated], [Installer.Upgrade], [Folder.Rollback], [Folder.Prune]
//     and [Folder.Uninstall] look after what is installed.
//   - [Installer.Mirror] copies a plugin and its evidence to another registry, or
//     to a [Layout].
//
// # Policy
//
// A [Policy] says whose signatures and attestations count for which names. The
// zero value refuses everything. Read it from a file, see [ReadPolicy], or write it
// in code, see [NewPolicy]. [UnsafeNoVerification] allows everything.
//
// # Errors
//
// Errors have one of twelve kinds, such as [ErrRefused] or [ErrNotFound]. Compare
// them with [errors.Is]. Why, within a kind, is data: see [Reason] for the words and
// [Reasons] for those of an error.
//
//	switch _, err := i.Verify(ctx, ref); {
//	case errors.Is(err, installer.ErrRefused):
//		log.Print("not allowed: ", installer.Reasons(err), err)
//	case errors.Is(err, installer.ErrEvidence), errors.Is(err, installer.ErrUnavailable):
//		log.Print("try again later: ", err)
//	}
//
// With [errors.AsType], [*Error] has the reference, [*RefusedError] the evidence that
// does not count, [*NoRuleError] the rule to add to the policy, and [*PartialError]
// the platforms that a mirror has.
//
// # Limits
//
// The package prints nothing, reads no environment variable, keeps no global
// state, and contacts only the sources that it is given. It neither packages nor
// publishes plugins, and it does not start them.
package installer
