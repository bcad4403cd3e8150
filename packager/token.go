package packager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/secureurl"
)

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
