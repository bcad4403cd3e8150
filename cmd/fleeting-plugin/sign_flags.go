package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// signFlags are those of commands that sign.
type signFlags struct {
	app          *cli.App
	key          string
	passwordFile string
	keyless      bool
	token        string
	fulcio       string
	rekor        string
	rekorVersion int
	tsa          string
	trustedRoot  string
}

func addSignFlags(app *cli.App, flags *pflag.FlagSet) *signFlags {
	s := &signFlags{app: app}
	flags.StringVar(&s.key, "key", "", "private key to sign with: a PEM `FILE`, cosign's encrypted form or plain, or env://VARIABLE")
	flags.StringVar(&s.passwordFile, "password-file", "", "`FILE` with the key's password (default: COSIGN_PASSWORD, else asked for)")
	flags.BoolVar(&s.keyless, "keyless", false, "sign with a short-lived certificate for the identity of this CI job")
	flags.StringVar(&s.token, "identity-token", "", "OIDC `TOKEN` for --keyless, or a file with it (default: from GitHub Actions or GitLab CI)")
	flags.StringVar(&s.fulcio, "fulcio-url", "", "`URL` of the certificate authority for --keyless (default: the public sigstore)")
	flags.StringVar(&s.rekor, "rekor-url", "", "`URL` of the transparency log (default: the public sigstore's with --keyless, else none)")
	flags.IntVar(&s.rekorVersion, "rekor-version", 0, "version of the transparency log's API, `1|2` (default 1)")
	flags.StringVar(&s.tsa, "tsa-url", "", "`URL` of the timestamp authority (default: none)")
	flags.StringVar(&s.trustedRoot, "trusted-root", "", "`FILE` with the trusted root, in JSON, with which each signature is checked before it is published")
	return s
}

// placeFlags say in which forms, and where, signatures are published.
type placeFlags struct {
	app        *cli.App
	format     string
	repository string
}

func addPlaceFlags(app *cli.App, flags *pflag.FlagSet) *placeFlags {
	p := &placeFlags{app: app}
	flags.StringVar(&p.format, "signature-format", string(packager.FormatBoth),
		"how to publish signatures and attestations, `bundle|tag|both`: as bundles among the referrers, under tags, or both")
	addSignatureRepository(flags, &p.repository, "publish signatures and attestations in this `REPOSITORY` (default $COSIGN_REPOSITORY, else beside the artifact)")
	return p
}

// envSignatureRepository is cosign's variable for the repository of signatures.
const envSignatureRepository = "COSIGN_REPOSITORY"

func addSignatureRepository(flags *pflag.FlagSet, name *string, usage string) {
	flags.StringVar(name, "signature-repository", "", usage)
}

// open reads the form, and opens the repository of signatures, nil if there is none.
func (p *placeFlags) open(registry *cli.RegistryFlags) (packager.SignatureFormat, packager.Repository, error) {
	format, err := packager.ParseSignatureFormat(p.format)
	if err != nil {
		return "", nil, cli.WithCode(err, cli.Usage)
	}
	repo, err := openSignatures(p.app, registry, p.repository)
	return format, repo, err
}

// openSignatures opens the repository that the flag or the variable names.
func openSignatures(app *cli.App, registry *cli.RegistryFlags, flag string) (packager.Repository, error) {
	name := cmp.Or(flag, app.Env(envSignatureRepository))
	if name == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	repo, tag, err := openTarget(registry, name)
	if err == nil && tag != "" {
		err = cli.Usagef("signature repository %s: omit the tag", name)
	}
	if err != nil {
		return nil, cli.Hintf(err, "write --signature-repository, or %s, as host[:port]/path", envSignatureRepository)
	}
	return repo, nil
}

// given says whether the flags ask for a signature at all.
func (s *signFlags) given() bool { return s.key != "" || s.keyless || s.token != "" }

// inEnvironment says whether the secret to sign with is in the environment, or can
// be asked for with what is there: whatever is started can read it.
func (s *signFlags) inEnvironment() bool {
	return s.keyless || s.token != "" || strings.HasPrefix(s.key, "env://")
}

// signer makes the signer that the flags ask for.
func (s *signFlags) signer(ctx context.Context) (*packager.Signer, error) {
	keyless := s.keyless || s.token != ""
	switch {
	case s.key != "" && keyless:
		return nil, cli.Usagef("--key and --keyless exclude each other")
	case !s.given():
		return nil, cli.Usagef("choose how to sign: --key FILE or --keyless")
	}
	services := packager.SigningServices{RekorURL: s.rekor, RekorVersion: s.rekorVersion, TSAURL: s.tsa}
	if s.trustedRoot != "" {
		raw, err := readInput(s.trustedRoot, "check the path after --trusted-root")
		if err != nil {
			return nil, err
		}
		services.TrustedRoot = raw
	}
	if keyless {
		return s.identity(services)
	}
	key, err := s.readKey()
	if err != nil {
		return nil, err
	}
	var password []byte
	if packager.EncryptedKey(key) {
		if password, err = s.password(ctx); err != nil {
			return nil, err
		}
	}
	return packager.KeySigner(key, password, services)
}

func (s *signFlags) readKey() ([]byte, error) {
	if name, ok := strings.CutPrefix(s.key, "env://"); ok {
		value, set := s.app.LookupEnv(name)
		if !set {
			return nil, cli.Hintf(cli.Usagef("--key %s: the variable is not set", s.key), "set %s to the private key in PEM; jobs get a secret only if it is handed to them", name)
		}
		if strings.TrimSpace(value) == "" {
			return nil, cli.Hintf(cli.Usagef("--key %s: the variable is empty", s.key),
				"set %s to the private key in PEM; jobs of forks and of branches and tags that are not protected get no secrets", name)
		}
		return []byte(value), nil
	}
	return readInput(s.key, "check the path after --key; a key pair is made with: cosign generate-key-pair")
}

// password comes from a file, the environment or a person.
func (s *signFlags) password(ctx context.Context) ([]byte, error) {
	if s.passwordFile != "" {
		raw, err := readInput(s.passwordFile, "check the path after --password-file")
		return []byte(strings.TrimRight(string(raw), "\r\n")), err
	}
	if value, ok := s.app.LookupEnv("COSIGN_PASSWORD"); ok {
		return []byte(value), nil
	}
	if !s.app.Interactive() || !s.app.CanAsk() {
		return nil, cli.Usagef("the key %s needs a password: set COSIGN_PASSWORD or give --password-file", s.key)
	}
	return s.app.ReadSecret(ctx, "password for "+s.key)
}

func (s *signFlags) identity(services packager.SigningServices) (*packager.Signer, error) {
	source, err := packager.DetectIdentity(s.app.LookupEnv, &http.Client{Timeout: time.Minute})
	if s.token != "" {
		token := s.token
		if raw, readErr := textfile.Read(s.token); readErr == nil {
			token = strings.TrimSpace(string(raw))
		} else if !errors.Is(readErr, os.ErrNotExist) && !strings.Contains(token, ".") {
			return nil, readErr
		}
		source, err = func(context.Context) (string, error) { return token, nil }, nil
	}
	if err != nil {
		return nil, err
	}
	return packager.KeylessSigner(packager.KeylessOptions{
		Token: source, FulcioURL: cmp.Or(s.fulcio, s.app.Env("SIGSTORE_FULCIO_URL")), SigningServices: services,
	})
}
