package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// readInput reads a file that somebody named. One that cannot be read is a
// mistake in how the command was called; next is what to do about it.
func readInput(name, next string) ([]byte, error) {
	content, err := textfile.Read(name)
	if err != nil {
		return nil, cli.Hint(cli.WithCode(err, cli.Usage), next)
	}
	return content, nil
}

// What to do about files that cannot be read.
const (
	nextKey    = "name the file with the publisher's public key, as cosign generate-key-pair writes cosign.pub"
	nextRoot   = "name a trusted root, as cosign trusted-root create writes it; a mirror has one as trusted-root.json"
	nextPolicy = "write one: fleeting-plugin policy init FILE"
	nextMirror = "name a tar file or a folder that fleeting-plugin mirror wrote"

	nextRegistryMirror = "write a registry, or a registry and the beginning of a repository, on both sides: registry.example.com/team=mirror.internal/plugins"

	nextIssuer    = "such as https://token.actions.githubusercontent.com for GitHub Actions or https://gitlab.com for GitLab"
	nextFolder    = "name the folder where the runner looks: --dir DIR, or FLEETING_PLUGIN_PATH as the runner has it"
	nextInstalled = "name the folder of an installed version, or a file in it: fleeting-plugin list --output json has them"
)

// folderFlags say where plugins are installed.
type folderFlags struct {
	app       *cli.App
	dir, root string
}

func newFolderFlags(app *cli.App, cmd *cobra.Command) *folderFlags {
	f := &folderFlags{app: app}
	cmd.Flags().StringVar(&f.dir, "dir", "", "`DIR` with the plugins (default $FLEETING_PLUGIN_PATH, else where the runner looks)")
	cmd.Flags().StringVar(&f.root, "root", "", "take the folder beneath `DIR`, to prepare an image")
	mapInstallerErrors(app)
	return f
}

func (f *folderFlags) path() (string, error) {
	dir := f.dir
	if dir == "" {
		var err error
		if dir, err = installer.DefaultFolder(f.app.LookupEnv); err != nil {
			return "", cli.Hint(cli.WithCode(err, cli.Usage), "name the folder: --dir FOLDER")
		}
		if f.root == "" && !filepath.IsAbs(dir) {
			return "", cli.Hint(cli.Usagef("FLEETING_PLUGIN_PATH is %s: a relative path is another folder for the runner, which starts elsewhere", dir), "set it to an absolute path, here and for the runner")
		}
	}
	if f.root == "" {
		return dir, nil
	}
	return beneath(f.root, dir)
}

// beneath is a folder in the tree of an image. Neither .. nor a link in the
// tree leads out of it.
func beneath(tree, dir string) (string, error) {
	// With slashes: a path of Windows that begins with two is that of a share.
	inside := strings.Trim(path.Clean("/"+filepath.ToSlash(strings.TrimPrefix(dir, filepath.VolumeName(dir)))), "/")
	whole := filepath.Join(tree, filepath.FromSlash(inside))
	root, err := os.OpenRoot(tree)
	if errors.Is(err, fs.ErrNotExist) {
		return whole, nil
	}
	if err != nil {
		return "", cli.WithCode(err, cli.Usage)
	}
	defer func() { _ = root.Close() }()
	at := ""
	for element := range strings.SplitSeq(inside, "/") {
		at = filepath.Join(at, element)
		if at == "" {
			break // the tree itself
		}
		_, err := root.Stat(at)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return "", cli.Hint(cli.WithCode(fmt.Errorf("--root %s: %w", tree, err), cli.Refused), "a link in the tree points out of it; name the folder that it points to with --dir")
		}
	}
	return whole, nil
}

// named says that somebody chose the folder, and how.
func (f *folderFlags) named() (how string, ok bool) {
	switch {
	case f.dir != "":
		return "--dir", true
	case f.app.Env("FLEETING_PLUGIN_PATH") != "":
		return "FLEETING_PLUGIN_PATH", true
	}
	return "", false
}

func (f *folderFlags) folder() (*installer.Folder, error) {
	dir, err := f.path()
	if err != nil {
		return nil, err
	}
	return installer.OpenFolder(dir)
}

// policyFlags say what is trusted.
type policyFlags struct {
	app                           *cli.App
	file                          string
	keys                          []string
	identity, issuer, trustedRoot string
	insecure                      bool
	// read is the policy file that was read, missing the one that was not there.
	read, missing string
	// anchors are the files that decide what is trusted: policy, keys and roots.
	anchors []string
}

// anchored is a reader of files that decide what is trusted, relative to dir.
func (p *policyFlags) anchored(dir string, read installer.FileReader) installer.FileReader {
	return func(name string) ([]byte, error) {
		at := name
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		p.anchors = append(p.anchors, absolute(at))
		return read(name)
	}
}

func newPolicyFlags(app *cli.App, cmd *cobra.Command) *policyFlags {
	p := &policyFlags{app: app}
	flags := cmd.Flags()
	flags.StringVar(&p.file, "policy", "", "policy `FILE` (default $FLEETING_PLUGIN_POLICY, else fleeting/policy.toml where configuration is)")
	flags.StringArrayVar(&p.keys, "key", nil, "in place of a policy: `FILE` with a public key that must have signed (repeatable, one suffices)")
	flags.StringVar(&p.identity, "certificate-identity", "", "in place of a policy: `IDENTITY` that must have signed without a key; ^…$ is a pattern")
	flags.StringVar(&p.issuer, "certificate-oidc-issuer", "", "`URL` of the issuer of --certificate-identity")
	flags.StringVar(&p.trustedRoot, "trusted-root", "", "`FILE` with the trusted root for --certificate-identity (default: the public sigstore instance)")
	flags.BoolVar(&p.insecure, "insecure-no-verification", false, "verify no signatures: anyone who controls the registry controls what is installed")
	app.OtherFlags(verifiersFlags())
	return p
}

// policy reads what the flags name. The policy file is looked for only when no
// flag says something else.
func (p *policyFlags) policy() (installer.Policy, error) {
	given := 0
	for _, is := range []bool{p.file != "", len(p.keys) > 0, p.identity != "" || p.issuer != "", p.insecure} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return installer.Policy{}, cli.Usagef("--policy, --key, --certificate-identity and --insecure-no-verification exclude each other")
	case p.insecure:
		p.app.Warnf("signatures are not verified")
		return installer.UnsafeNoVerification(), nil
	case len(p.keys) > 0:
		return p.fromKeys()
	case p.identity != "" || p.issuer != "":
		return p.fromIdentity()
	}
	return p.fromFile()
}

func (p *policyFlags) fromKeys() (installer.Policy, error) {
	rule := installer.Rule{Scope: "**"}
	for _, name := range p.keys {
		p.anchors = append(p.anchors, absolute(name))
		pem, err := readInput(name, nextKey)
		if err != nil {
			return installer.Policy{}, err
		}
		signer, err := installer.RequireKey(pem, installer.KeyOptions{})
		if err != nil {
			return installer.Policy{}, cli.Hint(cli.WithCode(fmt.Errorf("%s: %w", name, err), cli.Usage), nextKey)
		}
		rule.Signers = append(rule.Signers, signer)
	}
	return installer.NewPolicy(rule)
}

func (p *policyFlags) fromIdentity() (installer.Policy, error) {
	switch {
	case p.issuer == "":
		return installer.Policy{}, cli.Hint(cli.Usagef("--certificate-identity needs --certificate-oidc-issuer"), "add --certificate-oidc-issuer, "+nextIssuer)
	case p.identity == "":
		return installer.Policy{}, cli.Hint(cli.Usagef("--certificate-oidc-issuer needs --certificate-identity"), "add --certificate-identity; fleeting-plugin inspect REF shows who claims to have signed")
	}
	identity := installer.Identity{Issuer: p.issuer, Subject: p.identity}
	if len(p.identity) > 0 && p.identity[0] == '^' {
		identity.Subject, identity.SubjectPattern = "", p.identity
	}
	var opts installer.IdentityOptions
	if p.trustedRoot != "" {
		p.anchors = append(p.anchors, absolute(p.trustedRoot))
		root, _, err := identityRoot(p.trustedRoot)
		if err != nil {
			return installer.Policy{}, err
		}
		opts.Root = root
	}
	signer, err := installer.RequireIdentity(identity, opts)
	if err != nil {
		return installer.Policy{}, cli.Hint(cli.WithCode(err, cli.Usage), "write both as the certificate has them, the issuer "+nextIssuer)
	}
	return installer.NewPolicy(installer.Rule{Scope: "**", Signers: []installer.Signer{signer}})
}

// fromFile reads the policy file. The project's own publisher is built in, beneath
// what the file says.
func (p *policyFlags) fromFile() (installer.Policy, error) {
	own, err := installer.OwnPublisher()
	if err != nil {
		return installer.Policy{}, err
	}
	name, explicit := p.path()
	if name == "" {
		return installer.NewPolicy(own)
	}
	p.anchors = append(p.anchors, absolute(name))
	content, err := readInput(name, nextPolicy)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		p.missing = name
		return installer.NewPolicy(own)
	}
	if err != nil {
		return installer.Policy{}, err
	}
	p.read = absolute(name)
	policy, err := installer.ParsePolicy(content, p.anchored(filepath.Dir(name), installer.FilesBeside(name)), own)
	if err != nil {
		return installer.Policy{}, fmt.Errorf("%s: %w", p.read, err)
	}
	return policy, nil
}

// path is the policy file, and whether somebody named it.
func (p *policyFlags) path() (name string, explicit bool) {
	if p.file != "" {
		return p.file, true
	}
	if name := p.app.Env("FLEETING_PLUGIN_POLICY"); name != "" {
		return name, true
	}
	return places.Of(p.app.LookupEnv).Policy(), false
}

// installFlags are all flags of a command that resolves or installs.
type installFlags struct {
	*folderFlags
	*policyFlags
	registry *cli.RegistryFlags
	platform string
	from     string
	mirrors  []string
	// signatures is the repository of --signature-repository.
	signatures string
	app        *cli.App
	cleanup    []func() error
}

func newInstallFlags(app *cli.App, cmd *cobra.Command) *installFlags {
	f := newFetchFlags(app, cmd)
	f.folderFlags = newFolderFlags(app, cmd)
	cmd.Flags().StringVar(&f.platform, "platform", "", "choose for this `PLATFORM`, such as linux/arm64 (default: this machine's)")
	return f
}

// newFetchFlags leaves out what says where and for what to install.
func newFetchFlags(app *cli.App, cmd *cobra.Command) *installFlags {
	f := &installFlags{folderFlags: &folderFlags{app: app}, policyFlags: newPolicyFlags(app, cmd), app: app}
	mapInstallerErrors(app)
	f.registry = app.RegistryFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.from, "from", "", "take plugins from this `MIRROR`: an OCI layout folder or a tar file")
	cmd.Flags().StringArrayVar(&f.mirrors, "registry-mirror", nil,
		"fetch names that begin with FROM from TO, as `FROM=TO`; the policy applies to the original name (repeatable)")
	addSignatureRepository(cmd.Flags(), &f.signatures,
		"look for signatures and attestations in this `REPOSITORY`, too (default signature-repository in the policy, else $COSIGN_REPOSITORY)")
	return f
}

// mirrored is an opener with the mirrors of the flags.
func (f *installFlags) mirrored(open installer.Opener) (installer.Opener, error) {
	mirrors := map[string]string{}
	for _, text := range f.mirrors {
		from, to, ok := strings.Cut(text, "=")
		if _, twice := mirrors[from]; !ok || twice {
			return nil, cli.Hint(cli.Usagef("--registry-mirror %q: want FROM=TO, once for each FROM", text), nextRegistryMirror)
		}
		mirrors[from] = to
	}
	open, err := installer.WithMirrors(open, mirrors)
	return open, cli.Hint(cli.WithCode(err, cli.Usage), nextRegistryMirror)
}

// closing is run with the flags' temporary folders removed after it.
func (f *installFlags) closing(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := f.explain(explained(cmd, args, atHand(cmd, run(cmd, args))))
		if closeErr := f.close(); closeErr != nil {
			return errors.Join(err, closeErr)
		}
		return err
	}
}

// source opens registries with the credentials of the flags, or the mirror.
func (f *installFlags) source(ctx context.Context) (installer.Opener, error) {
	if f.from != "" {
		layout, err := f.layout(ctx)
		if err != nil {
			return nil, err
		}
		return layout.Open, nil
	}
	registries, err := f.registries()
	if err != nil {
		return nil, err
	}
	return f.mirrored(registries.Open)
}

// signaturePlace is where signatures are looked for besides the plugin's own
// repository.
func (f *installFlags) signaturePlace() []installer.Option {
	name := cmp.Or(f.signatures, f.app.Env(envSignatureRepository))
	if name == "" {
		return nil
	}
	return []installer.Option{installer.WithSignatureRepository(name)}
}

// installer makes the installer that the flags describe.
func (f *installFlags) installer(ctx context.Context, extra ...installer.Option) (*installer.Installer, error) {
	policy, err := f.policy()
	if err != nil {
		return nil, err
	}
	return f.withPolicy(ctx, policy, extra...)
}

func (f *installFlags) withPolicy(ctx context.Context, policy installer.Policy, extra ...installer.Option) (*installer.Installer, error) {
	dir, err := f.folderFlags.path()
	if err != nil {
		return nil, err
	}
	source, err := f.source(ctx)
	if err != nil {
		return nil, err
	}
	opts := append(f.signaturePlace(), installer.WithFolder(dir), installer.WithSource(source),
		installer.WithClock(f.app.Now), installer.WithLogger(f.app.Logger()))
	if f.platform != "" {
		opts = append(opts, installer.WithPlatform(f.platform))
	}
	i, err := installer.New(policy, append(opts, extra...)...)
	return i, cli.WithCode(err, cli.Usage)
}

// parseReferences reads references from a command line.
func parseReferences(args []string) ([]installer.Reference, error) {
	var refs []installer.Reference
	for _, arg := range args {
		ref, err := installer.ParseReference(arg)
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// atOnce is how many plugins are looked at side by side: the time goes into
// waiting for registries.
const atOnce = 8

// together does something for every element, several side by side, and returns
// the results in the order of the list, also if some failed. One failure keeps
// its exit code; of several the first decides.
func together[T, R any](ctx context.Context, list []T, do func(T) (R, error)) ([]R, error) {
	results, failures := make([]R, len(list)), make([]error, len(list))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for n, one := range list {
		group.Go(func() error {
			if failures[n] = ctx.Err(); failures[n] == nil {
				results[n], failures[n] = do(one)
			}
			return nil
		})
	}
	_ = group.Wait()
	var done []R
	var problems []error
	for n, err := range failures {
		switch {
		case err == nil:
			done = append(done, results[n])
		case ctx.Err() == nil || len(problems) == 0:
			problems = append(problems, err)
		}
	}
	if len(problems) == 1 {
		return done, problems[0]
	}
	return done, errors.Join(problems...)
}

// byPlugin groups what is about one plugin, in the order of the list: only that
// has to happen one after the other.
func byPlugin(refs []installer.Reference) [][]installer.Reference {
	var groups [][]installer.Reference
	at := map[string]int{}
	for _, ref := range refs {
		n, ok := at[ref.Name()]
		if !ok {
			n = len(groups)
			at[ref.Name()], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], ref)
	}
	return groups
}

// each does something for every element, also after one has failed. One failure
// keeps its exit code; of several the first decides.
func each[T any](ctx context.Context, list []T, do func(T) error) error {
	var problems []error
	for _, one := range list {
		if ctx.Err() != nil {
			problems = append(problems, ctx.Err())
			break
		}
		if err := do(one); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) == 1 {
		return problems[0]
	}
	return errors.Join(problems...)
}
