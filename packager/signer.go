package packager

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/secureurl"
	"github.com/radome-io/fleeting-plugin-openstack/packager/internal/signer"
)

// Signer signs artifacts, with a key or keyless. Make it with [KeySigner] or
// [KeylessSigner].
type Signer struct{ s *signer.Signer }

// Certified is what a certificate authority says about a keyless signer and its
// build.
type Certified = signer.Certified

// PublicKey returns the public half of the key in PEM, nil for a keyless signer.
func (s *Signer) PublicKey() []byte { return s.s.PublicKey() }

// Certified returns what the certificate of a keyless signer says, nil for a signer
// with a key. It asks the certificate authority, unless there is a certificate yet.
func (s *Signer) Certified(ctx context.Context) (*Certified, error) { return s.s.Certified(ctx) }

// Expected returns the identity that a keyless signer is going to have, by its
// token, and asks no authority. It is nil for a signer with a key.
func (s *Signer) Expected(ctx context.Context) (*Certified, error) { return s.s.Expected(ctx) }

// SigningServices are the sigstore services that prove when a signature was
// made. Empty fields leave a service out.
type SigningServices struct {
	// RekorURL is the transparency log; RekorVersion its API, 1 (default) or 2.
	RekorURL     string
	RekorVersion int
	// TSAURL is the timestamp authority, with its path.
	TSAURL string
	// TrustedRoot is a trusted root in JSON. If given, everything that is
	// signed is verified with it before it is published.
	TrustedRoot []byte
}

func (s SigningServices) internal() signer.Services {
	return signer.Services{RekorURL: s.RekorURL, RekorVersion: s.RekorVersion, TSAURL: s.TSAURL, TrustedRoot: s.TrustedRoot}
}

// The errors of signing, for [errors.Is].
var (
	// ErrKey: not a private key that can sign.
	ErrKey = signer.ErrKey
	// ErrPassword: the password does not open the private key.
	ErrPassword = signer.ErrPassword
	// ErrToken: the identity token cannot be used.
	ErrToken = signer.ErrToken
	// ErrSigningOptions: the options are incomplete or contradict themselves.
	ErrSigningOptions = signer.ErrOptions
	// ErrTrustedRoot: what was signed does not verify with the trusted root.
	ErrTrustedRoot = signer.ErrTrustedRoot
	// ErrSigningService: a sigstore service did not do its part.
	ErrSigningService = signer.ErrService
)

// KeySigner signs with a private key in PEM: cosign's encrypted form, or
// PKCS #8, SEC 1 or PKCS #1 in plain text, for which the password is not used.
// Errors are [ErrKey], [ErrPassword] and [ErrSigningOptions].
func KeySigner(pem, password []byte, services SigningServices) (*Signer, error) {
	s, err := signer.FromKey(pem, password, services.internal())
	if err != nil {
		return nil, err
	}
	return &Signer{s}, nil
}

// EncryptedKey says whether a private key in PEM needs a password.
func EncryptedKey(pem []byte) bool { return signer.Encrypted(pem) }

// GenerateKeyPair makes a key pair as cosign does: the private half encrypted
// with the password, which may be empty.
func GenerateKeyPair(password []byte) (private, public []byte, err error) {
	return signer.GenerateKeyPair(password)
}

// KeylessOptions say how to sign with a short-lived certificate.
type KeylessOptions struct {
	// Token is called for an OIDC identity token whenever a certificate is
	// needed.
	Token func(context.Context) (string, error)
	// FulcioURL is the certificate authority. Empty means the public instance
	// of sigstore for all services that are left empty.
	FulcioURL string
	SigningServices
}

// KeylessSigner signs with certificates that Fulcio issues for an identity.
// Errors are [ErrToken] and [ErrSigningOptions].
func KeylessSigner(opts KeylessOptions) (*Signer, error) {
	services := opts.internal()
	if opts.FulcioURL == "" {
		services.RekorURL = cmp.Or(services.RekorURL, signer.PublicRekorURL)
		opts.FulcioURL = signer.PublicFulcioURL
	}
	s, err := signer.Keyless(signer.KeylessOptions{Token: opts.Token, FulcioURL: opts.FulcioURL, Services: services})
	if err != nil {
		return nil, err
	}
	return &Signer{s}, nil
}

// ErrNoIdentity says that no CI system offers an identity token.
var ErrNoIdentity = errors.New("no identity token: not in GitHub Actions with the permission id-token: write, nor in GitLab CI with id_tokens: SIGSTORE_ID_TOKEN")

// sigstoreAudience is whom Fulcio expects a token to be for.
const sigstoreAudience = "sigstore"

// DetectIdentity returns a source of OIDC identity tokens for [KeylessOptions]:
// SIGSTORE_ID_TOKEN, which GitLab CI sets where the job asks for it, or GitHub
// Actions' token service. lookup is like [os.LookupEnv], client carries the
// request to GitHub. It returns [ErrNoIdentity] where there is neither.
func DetectIdentity(lookup func(string) (string, bool), client *http.Client) (func(context.Context) (string, error), error) {
	env := func(name string) string { v, _ := lookup(name); return v }
	if token := env("SIGSTORE_ID_TOKEN"); token != "" {
		return func(context.Context) (string, error) { return token, nil }, nil
	}
	address, bearer := env("ACTIONS_ID_TOKEN_REQUEST_URL"), env("ACTIONS_ID_TOKEN_REQUEST_TOKEN")
	if address == "" || bearer == "" {
		return nil, ErrNoIdentity
	}
	return func(ctx context.Context) (string, error) {
		token, err := githubToken(ctx, client, address, bearer)
		if err != nil {
			return "", fmt.Errorf("%w: asking GitHub Actions for one: %w", ErrToken, err)
		}
		return token, nil
	}, nil
}

// githubToken follows
// https://docs.github.com/actions/concepts/security/openid-connect.
func githubToken(ctx context.Context, client *http.Client, address, bearer string) (string, error) {
	if err := secureurl.Check(address); err != nil {
		return "", err // the request carries a secret, and so does the answer
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	query := u.Query()
	query.Set("audience", sigstoreAudience)
	u.RawQuery = query.Encode()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %s", resp.Status)
	}
	var answer struct {
		Value string `json:"value"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil {
		return "", err
	}
	if answer.Value == "" {
		return "", errors.New("the answer holds no token")
	}
	return answer.Value, nil
}
