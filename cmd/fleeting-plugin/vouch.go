package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// voucher makes what decides which versions of a repository are the publisher's:
// those that the policy accepts, or whoever signs.
type voucher struct {
	app      *cli.App
	registry *cli.RegistryFlags
	// file is a policy.
	file string
}

func addVoucher(app *cli.App, registry *cli.RegistryFlags, flags *pflag.FlagSet) *voucher {
	v := &voucher{app: app, registry: registry}
	flags.StringVar(&v.file, "policy", "",
		"policy `FILE` that says whose versions count when the aliases move (default: those of the key or workflow that signs)")
	return v
}

// byPolicy accepts what the file accepts; nil if no file is named.
func (v *voucher) byPolicy(repository string, signatures packager.Repository) (packager.Vouch, error) {
	if v.file == "" {
		return nil, nil //nolint:nilnil // nothing was asked for
	}
	content, err := readInput(v.file, nextPolicy)
	if err != nil {
		return nil, err
	}
	policy, err := installer.ParsePolicy(content, installer.FilesBeside(v.file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.file, err)
	}
	return v.vouch(repository, policy, signatures)
}

// bySigner accepts what the signer has signed, or for a keyless one the same
// workflow. A plan asks for no certificate.
func (v *voucher) bySigner(ctx context.Context, repository string, s *packager.Signer, sign *signFlags, signatures packager.Repository, plan bool) (packager.Vouch, error) {
	if vouch, err := v.byPolicy(repository, signatures); vouch != nil || err != nil || s == nil {
		return vouch, err
	}
	var signer installer.Signer
	var err error
	if pem := s.PublicKey(); pem != nil {
		signer, err = installer.RequireKey(pem, installer.KeyOptions{})
	} else {
		signer, err = sign.sameWorkflow(ctx, s, plan)
	}
	if err != nil {
		return nil, err
	}
	policy, err := installer.NewPolicy(installer.Rule{Scope: "**", Signers: []installer.Signer{signer}})
	if err != nil {
		return nil, err
	}
	return v.vouch(repository, policy, signatures)
}

// vouch verifies digests of the repository as an installation would, for all
// platforms.
func (v *voucher) vouch(repository string, policy installer.Policy, signatures packager.Repository) (packager.Vouch, error) {
	opts, err := v.registry.Options()
	if err != nil {
		return nil, err
	}
	registries, err := installer.NewRegistries(opts)
	if err != nil {
		return nil, err
	}
	options := []installer.Option{installer.WithSource(registries.Open), installer.WithClock(v.app.Now), installer.WithLogger(v.app.Logger())}
	if signatures != nil {
		options = append(options, installer.WithSignatureRepository(signatures.Name()))
	}
	i, err := installer.New(policy, options...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, d digest.Digest) (string, error) {
		ref, err := installer.ParseReference(repository + "@" + d.String())
		if err != nil {
			return "", err
		}
		_, err = i.VerifyAllPlatforms(ctx, ref)
		if errors.Is(err, installer.ErrRefused) {
			text := err.Error()
			if _, why, found := strings.Cut(text, installer.ErrRefused.Error()+": "); found {
				text = why
			}
			return text, nil
		}
		return "", err
	}, nil
}

// sameWorkflow requires the workflow that signs, at any tag, and at its branch if it
// runs at one.
func (s *signFlags) sameWorkflow(ctx context.Context, signer *packager.Signer, plan bool) (installer.Signer, error) {
	ask := signer.Certified
	if plan {
		ask = signer.Expected
	}
	by, err := ask(ctx)
	if err != nil {
		return installer.Signer{}, err
	}
	identity := installer.Identity{Issuer: by.Issuer, Subject: by.Identity}
	if workflow, ref, found := strings.Cut(by.Identity, "@refs/"); found {
		identity.Subject, identity.SubjectPattern = "", "^"+regexp.QuoteMeta(workflow)+`@refs/tags/[^@]+$`
		if !strings.HasPrefix(ref, "tags/") {
			identity.SubjectPattern = "^" + regexp.QuoteMeta(workflow) + `@refs/(tags/[^@]+|` + regexp.QuoteMeta(ref) + `)$`
		}
	}
	opts := installer.IdentityOptions{TimestampSuffices: s.tsa != ""}
	if s.trustedRoot != "" {
		root, content, err := identityRoot(s.trustedRoot)
		if err != nil {
			return installer.Signer{}, err
		}
		opts.Root = root
		// A private instance may have no log of certificates.
		opts.UnsafeNoSCT = !hasCertificateLog(content)
	}
	return installer.RequireIdentity(identity, opts)
}

// identityRoot reads the trusted root, and its content, that certificates are
// verified with.
func identityRoot(path string) (installer.TrustedRoot, []byte, error) {
	content, err := readInput(path, nextRoot)
	if err != nil {
		return installer.TrustedRoot{}, nil, err
	}
	root, err := installer.LoadTrustedRoot(content)
	var authorities struct {
		All []json.RawMessage `json:"certificateAuthorities"`
	}
	if err == nil {
		err = json.Unmarshal(content, &authorities)
	}
	if err == nil && len(authorities.All) == 0 {
		err = errors.New("the trusted root has no certificate authority, so that no certificate verifies with it")
	}
	if err != nil {
		return installer.TrustedRoot{}, nil, cli.Hint(cli.WithCode(fmt.Errorf("%s: %w", path, err), cli.Usage), nextRoot)
	}
	return root, content, nil
}

func hasCertificateLog(trustedRoot []byte) bool {
	var root struct {
		Logs []json.RawMessage `json:"ctlogs"`
	}
	return json.Unmarshal(trustedRoot, &root) == nil && len(root.Logs) > 0
}
