package cloud

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

const (
	// authTimeout bounds one authentication.
	authTimeout = 30 * time.Second
	// renewBefore is how long before its end a token is renewed, or at a quarter of
	// its life, if that is less. A call that begins with it may take its time.
	renewBefore = 15 * time.Minute
	// renewPause is how long after a failed renewal the next one is tried.
	renewPause = 30 * time.Second
)

// session holds the token, the catalogue that came with it, and what is needed
// to get the next one. The credentials are read from disk each time.
type session struct {
	opts      Options
	provider  *gophercloud.ProviderClient
	transport *swapTransport
	logins    logins
	secrets   redactor
	clock     clock
	log       *slog.Logger

	mu        sync.Mutex
	files     cloudsFiles
	stamp     string
	unusable  *unusable // nil when the last try was good
	renewAt   time.Time
	place     place
	endpoints endpoints
	login     Login
	wanted    Microversion // by clouds.yaml
}

// openSession authenticates for the first time.
func openSession(ctx context.Context, opts Options) (*session, error) {
	s := &session{opts: opts, transport: &swapTransport{}, logins: logins{random: opts.Random}, log: opts.Log}
	s.provider = &gophercloud.ProviderClient{HTTPClient: http.Client{
		Transport: bounded{s.transport, answerLimit}, CheckRedirect: checkCall,
	}}
	s.provider.UseTokenLock()
	s.secrets.addFixed(proxySecrets(opts.LookupEnv)...)
	s.secrets.addSent(opts.Hidden...)
	s.identify(s.provider)
	if err := s.authenticate(ctx); err != nil {
		return nil, err
	}
	s.provider.ReauthFunc = func(ctx context.Context) (err error) {
		// A panic would leave every later call waiting for this one.
		defer func() {
			if cause := recover(); cause != nil {
				err = fmt.Errorf("authenticate: internal error: %v", cause)
			}
		}()
		// The callers that wait for this token are not all cancelled when the
		// one that happened to ask for it is.
		return s.authenticate(context.WithoutCancel(ctx))
	}
	return s, nil
}

func (s *session) identify(provider *gophercloud.ProviderClient) {
	if s.opts.UserAgent != "" {
		provider.UserAgent.Prepend(s.opts.UserAgent)
	}
}

// authenticate reads the credentials and gets a token with them. What it read,
// the TLS settings included, takes effect only when all of it is good.
func (s *session) authenticate(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, authTimeout)
	defer cancel()
	creds, files, err := loadCredentials(s.opts)
	if err != nil {
		return &Error{Op: "read credentials", Kind: ErrUnauthorized, Err: err}
	}
	s.secrets.setLogin(creds.auth.Password, creds.auth.ApplicationCredentialSecret)
	transport, err := newTransport(creds.tls, s.opts.Transport)
	if err != nil {
		return &Error{Op: "read credentials", Kind: ErrUnauthorized, Err: err}
	}
	if err := s.logins.hold(files.read); err != nil {
		closeIdle(transport)
		return err
	}
	defer func() {
		s.logins.ended(files.read, err)
		if err != nil {
			closeIdle(transport)
		}
	}()
	asked := time.Now()
	once, err := s.token(ctx, loginAttempt{creds: creds, files: files, cloud: s.opts.Cloud}, transport)
	if err != nil {
		return err
	}
	s.secrets.setLogin(once.Token())
	result, ok := once.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return errors.New("authenticate: unexpected result type")
	}
	here, reached, err := placeOf(result, creds)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.place != (place{}) && !s.place.is(here) {
		return &Error{Op: "read credentials", Kind: ErrUnauthorized, Message: fmt.Sprintf(
			"%s leads to %s now, but the servers are in %s; put it back, or restart the runner", files.from, here, s.place)}
	}
	for _, remark := range creds.remarks {
		if !slices.Contains(s.login.Remarks, remark) {
			s.log.WarnContext(ctx, "a key of clouds.yaml has no effect", "cloud", s.opts.Cloud, "in", files.from, "detail", remark)
		}
	}
	s.files, s.stamp, s.endpoints, s.place, s.login = files, files.read, reached, here, loginOf(creds, files, reached)
	s.wanted = creds.version
	s.unusable, s.renewAt = nil, renewal(result, asked)
	s.transport.use(transport)
	s.provider.CopyTokenFrom(once)
	return nil
}

// placeOf tells where a token leads to, and the addresses of the services there.
func placeOf(result tokens.CreateResult, creds credentials) (place, endpoints, error) {
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return place{}, endpoints{}, errors.New("authenticate: the catalogue is not of the form that the API has")
	}
	var here place
	project, err := result.ExtractProject()
	if err != nil || project == nil || project.ID == "" {
		return place{}, endpoints{}, &Error{Op: authenticating, Kind: ErrUnauthorized, Message: "the token is for no project, and servers are made in one; set project_name or project_id"}
	}
	here.project = Resource{ID: project.ID, Name: project.Name}
	reached, err := chooseEndpoints(catalog.Entries, creds, here.project.ID)
	if err != nil {
		return place{}, endpoints{}, err
	}
	here.region = reached.region
	return here, reached, nil
}

// place is where servers are. It stays what it was when the process started:
// in any other place no server of the group exists, which would read as the
// deletion of all of them.
type place struct {
	project Resource
	region  string
}

// is tells whether two are the same; a project keeps its ID when it is renamed.
func (p place) is(other place) bool {
	return p.project.ID == other.project.ID && p.region == other.region
}

// String names it for people.
func (p place) String() string {
	if p.region == "" {
		return "project " + p.project.String()
	}
	return Printable("project " + p.project.String() + " in region " + p.region)
}

// renewal is when to replace a token, by this machine's clock: the cloud's may
// differ, so only the length of the token's life is taken from it.
func renewal(result tokens.CreateResult, asked time.Time) time.Time {
	var life struct {
		Expires time.Time `json:"expires_at"`
		Issued  time.Time `json:"issued_at"`
	}
	if result.ExtractInto(&life) != nil || life.Expires.IsZero() || life.Issued.IsZero() {
		return time.Time{}
	}
	length := life.Expires.Sub(life.Issued)
	if length <= 0 {
		return time.Time{} // it says nothing; once refused, the token is renewed
	}
	early := min(renewBefore, length/4)
	early += rand.N(early/10 + 1) //nolint:gosec // jitter, so that plugins started together do not stay together
	return asked.Add(length - early)
}

// freshen replaces a token that is about to end. Concurrent callers share one
// authentication. A failure is left to the call itself: the token may do.
func (s *session) freshen(ctx context.Context) error {
	s.mu.Lock()
	due := !s.renewAt.IsZero() && !time.Now().Before(s.renewAt)
	s.mu.Unlock()
	if !due {
		return nil
	}
	token := s.provider.Token()
	s.mu.Lock()
	due = !time.Now().Before(s.renewAt)
	s.mu.Unlock()
	if !due {
		return nil // another caller was faster
	}
	if err := s.provider.Reauthenticate(ctx, token); err != nil {
		s.log.WarnContext(ctx, "token not renewed", "reason", err.Error())
		s.mu.Lock()
		defer s.mu.Unlock()
		// The token is good for a while yet, and calls must not wait for
		// Keystone one by one; once it ends, it is renewed anyway.
		s.renewAt = time.Now().Add(renewPause)
		return ctx.Err()
	}
	return nil
}

// unusable is the stamp of changed files that were of no use, and when to try
// them again. Never, before they change, if that is zero: asking again and again
// with a password that was refused locks accounts.
type unusable struct {
	stamp string
	again time.Time
}

// waits reports whether files of that stamp are not to be tried now.
func (u *unusable) waits(stamp string) bool {
	return u != nil && stamp == u.stamp && (u.again.IsZero() || time.Now().Before(u.again))
}

// RereadCredentials authenticates anew when clouds.yaml or secure.yaml changed
// on disk since they were last read, and makes no call otherwise. Should that
// fail, because somebody is still writing them, the present token goes on to
// be used until the files change again, or it is refused or ends. Files that
// Keystone could not look at are tried again after a pause.
func (c *Client) RereadCredentials(ctx context.Context) {
	s := c.session
	s.mu.Lock()
	stamp := s.files.stamp()
	changed := stamp != s.stamp && !s.unusable.waits(stamp)
	s.mu.Unlock()
	if !changed {
		return
	}
	s.log.InfoContext(ctx, "credentials changed on disk, authenticating anew")
	if err := s.provider.Reauthenticate(ctx, ""); err != nil {
		s.log.WarnContext(ctx, "changed credentials are not usable, going on with the present token", "reason", err.Error())
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unusable = &unusable{stamp: stamp}
		if !errors.Is(err, ErrUnauthorized) && !errors.Is(err, ErrForbidden) {
			s.unusable.again = time.Now().Add(renewPause)
		}
	}
}

func (s *session) endpoint(service string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if address, ok := s.endpoints.addresses[service]; ok {
		return address, nil
	}
	if err := s.endpoints.missing[service]; err != nil {
		return "", err
	}
	return "", &Error{Op: "find the " + service + " service", Kind: ErrInvalid, Message: "it is not in the catalogue"}
}

func (s *session) here() place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.place
}
