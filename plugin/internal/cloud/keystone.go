package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// attempt at a login: who logs in where, for people.
type loginAttempt struct {
	creds credentials
	files cloudsFiles
	cloud string
}

// token asks Keystone, on a client of its own that carries no token. At the start
// it asks again while Keystone does not answer; later, the calls that need a token
// are repeated.
func (s *session) token(ctx context.Context, login loginAttempt, transport http.RoundTripper) (*gophercloud.ProviderClient, error) {
	base, err := versioned(identity, login.creds.auth.IdentityEndpoint, "")
	if err != nil {
		return nil, fmt.Errorf("auth_url: %w", err)
	}
	once := &gophercloud.ProviderClient{HTTPClient: http.Client{Transport: bounded{transport, tokenLimit}, CheckRedirect: checkLogin}}
	once.UseTokenLock()
	s.identify(once)
	keystone := &gophercloud.ServiceClient{ProviderClient: once, Endpoint: base, Type: identity}
	for attempt := 0; ; attempt++ {
		result := tokens.Create(ctx, keystone, &login.creds.auth)
		err := once.SetTokenAndAuthResult(result)
		if err == nil && once.Token() == "" {
			err = &Error{Op: authenticating, Kind: ErrTransient, Message: "the answer has no token"}
		}
		if err == nil {
			return once, nil
		}
		failed := failure(authenticating, identity, err, false, &s.secrets)
		// Asking twice for a token does no harm.
		pause, again := retryDelay(failed, headerOf(nil, err), false, attempt, time.Now())
		if !again || s.here() != (place{}) {
			return nil, login.explain(failed)
		}
		s.opts.Retrying(failed)
		if sleep(ctx, spread(pause, s.opts.Random)) != nil {
			return nil, login.explain(failed)
		}
	}
}

// authenticating is what a failed login was doing.
const authenticating = "authenticate"

// explain adds to a failed login who tried to log in, where, by which file, and
// what it most likely was. Keystone says the same of every wrong name, password and
// secret, so that nobody can guess them.
func (l loginAttempt) explain(failed *Error) *Error {
	explained := *failed
	said := strings.TrimRight(cmp.Or(failed.Message, failed.cause()), " .")
	explained.Message = fmt.Sprintf("%s; login of %s at %s, from cloud %q of %s", said, l.who(), l.address(), l.cloud, l.files.from)
	if why := l.likely(failed); why != "" {
		explained.Message += "; most likely " + why
	}
	return &explained
}

// cause is the text of an error without a message.
func (e *Error) cause() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Kind.Error()
}

// address is auth_url, without a secret that may be in it.
func (l loginAttempt) address() string { return withoutQuery(l.creds.auth.IdentityEndpoint) }

// who is the user or the credential, the project and the region.
func (l loginAttempt) who() string {
	auth := l.creds.auth
	var b strings.Builder
	switch {
	case auth.ApplicationCredentialID != "":
		fmt.Fprintf(&b, "application credential %s", auth.ApplicationCredentialID)
	case auth.ApplicationCredentialName != "":
		fmt.Fprintf(&b, "application credential %q of %s", auth.ApplicationCredentialName, l.user())
	default:
		b.WriteString(l.user() + " with a password")
	}
	if scope := auth.Scope; scope != nil {
		switch {
		case scope.TrustID != "":
			fmt.Fprintf(&b, ", trust %s", scope.TrustID)
		case scope.ProjectID != "":
			fmt.Fprintf(&b, ", project %s", scope.ProjectID)
		default:
			fmt.Fprintf(&b, ", project %q%s", scope.ProjectName, ofDomain(scope.DomainID, scope.DomainName))
		}
	}
	if l.creds.region != "" {
		fmt.Fprintf(&b, ", region %s", l.creds.region)
	}
	return b.String()
}

func (l loginAttempt) user() string {
	auth := l.creds.auth
	if auth.UserID != "" {
		return "user " + auth.UserID
	}
	return fmt.Sprintf("user %q%s", auth.Username, ofDomain(auth.DomainID, auth.DomainName))
}

func ofDomain(id, name string) string {
	if name != "" {
		return fmt.Sprintf(" of domain %q", name)
	}
	return " of domain ID " + id
}

// likely is the likeliest cause of a failed login, or where to look; empty if
// that is said already.
func (l loginAttempt) likely(failed *Error) string {
	auth := l.creds.auth
	byCredential := auth.ApplicationCredentialSecret != ""
	secret := cmp.Or(auth.ApplicationCredentialSecret, auth.Password)
	fromService := !strings.Contains(failed.Message, notService)
	switch status := failed.Status; {
	case status == http.StatusUnauthorized && fromService && secret != strings.TrimSpace(secret):
		return "the blank that the password or the secret begins or ends with"
	case status == http.StatusUnauthorized && fromService && byCredential:
		return "a wrong secret, or an application credential that has expired"
	case status == http.StatusUnauthorized && fromService:
		return "a wrong password or user; a project or a domain that does not exist, or in which the user has no role, gets the same answer"
	case status == http.StatusNotFound && failed.Kind == ErrUnauthorized: //nolint:errorlint // a field, compared with its own sentinel
		return "a wrong ID, or the application credential was deleted, has expired, or its user has left the project"
	case status == http.StatusForbidden && fromService:
		return "an account that is locked or disabled, or a password that has to be changed"
	case status == 0:
		return ""
	case !fromService:
		return "an auth_url that is not Keystone's, which often ends in /v3 or /identity/v3, or a proxy in between (HTTPS_PROXY, NO_PROXY)"
	}
	return ""
}
