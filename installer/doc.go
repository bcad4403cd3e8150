// Package installer installs plugins for GitLab Runner's fleeting from OCI
// registries, after it has verified them.
//
// The steps, each of which can be taken alone:
//
//	ref, err := installer.ParseReference("registry.example.com/team/plugin:1.2")
//	policy, err := installer.ReadPolicy("/etc/gitlab-runner/fleeting-policy.toml")
//	i, err := installer.New(policy, installer.WithFolder(dir))
//	resolution, err := i.Resolve(ctx, ref)    // which version, which digests
//	verified, err := i.Verify(ctx, ref)       // and may it be installed
//	installed, err := i.Install(ctx, ref, installer.InstallOptions{})
//	path, err := i.Folder().LookPath(ref)     // no network
//
// A tag is looked up once; from then on there are only digests. Signatures are
// checked before any layer is downloaded, and only what a verification admitted
// can be committed to the folder: the types do not allow anything else. What is
// installed lies where the runner looks for plugins, and is found by it.
//
// The package prints nothing, reads no environment variable, keeps no global
// state, and contacts nothing but the sources that it is given. It neither
// packages nor publishes, and it does not start plugins.
package installer
