package cloud

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusedLoginsAreExplained: every refused login names where it was tried, as
// what and by which file, and its likeliest cause; never a secret.
func TestRefusedLoginsAreExplained(t *testing.T) {
	t.Parallel()
	const unauthorized = `{"error": {"code": 401, "message": "The request you have made requires authentication.", "title": "Unauthorized"}}`
	password := `{auth_url: "https://keystone.example/v3", username: ci, password: "` + stagePassword + `", project_name: jobs, project_domain_name: Apps}`
	credential := `{auth_url: "https://keystone.example", application_credential_id: abc123, application_credential_secret: "` + stagePassword + `"}`
	page := respond(http.StatusOK, "text/html", strings.NewReader("<title>Sign in</title>"))
	for name, row := range map[string]struct {
		auth   string
		answer func() (*http.Response, error)
		says   []string
		kind   error
	}{
		"a wrong password": {
			password, func() (*http.Response, error) { return reply(401, unauthorized), nil },
			[]string{"requires authentication", "HTTP 401", `user "ci" of domain ID default`, `project "jobs" of domain "Apps"`, "region R9", "https://keystone.example/v3", `cloud "c"`, "a wrong password or user"},
			ErrUnauthorized,
		},
		"a blank in the password": {
			strings.ReplaceAll(password, stagePassword, stagePassword+" "), func() (*http.Response, error) { return reply(401, unauthorized), nil },
			[]string{"the blank that the password or the secret begins or ends with"},
			ErrUnauthorized,
		},
		"a user by ID, a project by ID": {
			strings.NewReplacer("username: ci", "user_id: u1", "project_name: jobs, project_domain_name: Apps", "project_id: p1").Replace(password),
			func() (*http.Response, error) { return reply(401, unauthorized), nil },
			[]string{"user u1 with a password, project p1, region R9"},
			ErrUnauthorized,
		},
		"a trust": {
			strings.ReplaceAll(password, "project_name: jobs, project_domain_name: Apps", "trust_id: t1"), func() (*http.Response, error) { return reply(401, unauthorized), nil },
			[]string{"trust t1"},
			ErrUnauthorized,
		},
		"a wrong secret": {
			credential, func() (*http.Response, error) { return reply(401, unauthorized), nil },
			[]string{"application credential abc123, region R9", "a wrong secret, or an application credential that has expired"},
			ErrUnauthorized,
		},
		"a deleted credential": {
			credential, func() (*http.Response, error) {
				return reply(404, `{"error": {"code": 404, "message": "Could not find Application Credential: abc123."}}`), nil
			},
			[]string{"application credential abc123", "Could not find Application Credential", "deleted"},
			ErrUnauthorized,
		},
		"a locked account": {
			password, func() (*http.Response, error) {
				return reply(403, `{"error": {"code": 403, "message": "The account is locked for user: 1."}}`), nil
			},
			[]string{"locked for user", "a password that has to be changed"},
			ErrForbidden,
		},
		"a request that is repeated": {
			password, func() (*http.Response, error) {
				return reply(400, `{"error": {"code": 400, "message": "Invalid input for field 'identity/password': {'user': {'name': 'ci', 'password': '`+stagePassword+`'}} is not valid"}}`), nil
			},
			[]string{"Invalid input for field 'identity/password'", `user "ci"`},
			ErrInvalid,
		},
		"a portal": {
			password, func() (*http.Response, error) { page.Body = http.NoBody; return page, nil },
			[]string{"POST https://keystone.example/v3/auth/tokens returned text/html", "HTTP 200", "/identity/v3", "HTTPS_PROXY"},
			nil,
		},
		"a wrong path": {
			password, func() (*http.Response, error) {
				return respond(404, "text/html", strings.NewReader("<h1>Not Found</h1>")), nil
			},
			[]string{"POST https://keystone.example/v3/auth/tokens returned text/html, \"Not Found\"", "an auth_url that is not Keystone's"},
			ErrTransient,
		},
		"another method": {
			password, func() (*http.Response, error) {
				return respond(405, "text/html", strings.NewReader("<h1>Method Not Allowed</h1>")), nil
			},
			[]string{"returned text/html, \"Method Not Allowed\"", "an auth_url that is not Keystone's"},
			ErrInvalid,
		},
		"a redirect to HTTPS": {
			strings.ReplaceAll(password, "https://", "http://"), func() (*http.Response, error) {
				moved := respond(302, "text/html", strings.NewReader("moved"))
				moved.Header.Set("Location", "https://keystone.example/v3/auth/tokens")
				return moved, nil
			},
			[]string{"redirected from http://keystone.example/v3/auth/tokens to https://keystone.example/v3/auth/tokens", "write the new address into auth_url"},
			nil,
		},
		"no answer": {password, func() (*http.Response, error) { return nil, errBroken }, []string{"connection reset", `user "ci"`, "clouds.yaml"}, ErrTransient},
		"no token":  {password, func() (*http.Response, error) { return reply(201, stageLogin(time.Hour)), nil }, []string{"the answer has no token"}, ErrTransient},
		"a success that is none": {
			password, func() (*http.Response, error) {
				answer := reply(201, `{"token": {"catalog": "none"}}`)
				answer.Header.Set("X-Subject-Token", stageToken)
				return answer, nil
			}, []string{"catalogue"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, func(*http.Request) (*http.Response, error) { return row.answer() })
				s.write(t, "clouds: {c: {region_name: R9, auth: "+row.auth+"}}")
				_, err := Connect(t.Context(), s.options())
				if err == nil {
					t.Fatal("logged in")
				}
				if row.kind != nil && !errors.Is(err, row.kind) {
					t.Errorf("got %v, want %v", err, row.kind)
				}
				for _, part := range append(row.says, s.clouds) {
					if part == s.clouds && name == "a success that is none" {
						continue
					}
					if !strings.Contains(err.Error(), part) {
						t.Errorf("got %v, want %q in it", err, part)
					}
				}
				assertSafe(t, err.Error())
				assertSafe(t, s.logged())
			})
		})
	}
}

func (s *stage) write(t *testing.T, clouds string) {
	t.Helper()
	if err := os.WriteFile(s.clouds, []byte(clouds), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRedirectedLoginThatStaysALogin: 307 and 308 keep the request what it is.
func TestRedirectedLoginThatStaysALogin(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, func(r *http.Request) (*http.Response, error) {
				if r.URL.Host != "keystone.example" || r.URL.Scheme == "https" {
					return nil, nil //nolint:nilnil // as usual
				}
				moved := respond(status, "text/html", strings.NewReader("moved"))
				moved.Header.Set("Location", "https://keystone.example/v3/auth/tokens")
				return moved, nil
			})
			s.write(t, `clouds: {c: {auth: {auth_url: "http://keystone.example/v3", username: u, password: "`+stagePassword+`", project_name: p}}}`)
			s.connect(t)
			if got := s.count("POST /v3/auth/tokens"); got != 2 {
				t.Errorf("logins sent: %d, want the redirected one, too", got)
			}
		})
	}
}

// TestTokensAreRenewedEarly: at least ten minutes before the end of an hour, and
// within the last third of a shorter life.
func TestTokensAreRenewedEarly(t *testing.T) {
	t.Parallel()
	for life, row := range map[time.Duration]struct{ earliest, latest time.Duration }{
		time.Hour:        {43 * time.Minute, 50 * time.Minute},
		24 * time.Hour:   {24*time.Hour - 17*time.Minute, 24*time.Hour - 10*time.Minute},
		10 * time.Minute: {7 * time.Minute, 8 * time.Minute},
		4 * time.Second:  {2 * time.Second, 4 * time.Second},
	} {
		for range 5 {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, tokensOf(life))
				client := s.connect(t)
				started := time.Now()
				for s.count("POST /v3/auth/tokens") == 1 {
					<-time.After(min(time.Minute, life/20))
					if _, err := client.ListServers(t.Context(), "tag", time.Hour); err != nil {
						t.Fatal(err)
					}
				}
				if after := time.Since(started); after < row.earliest || after > row.latest {
					t.Errorf("a token of %v was renewed after %v, want %v to %v", life, after, row.earliest, row.latest)
				}
			})
		}
	}
}

// tokensOf plays a cloud without servers, whose tokens live so long.
func tokensOf(life time.Duration) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		switch {
		case r.URL.Host == "keystone.example":
			answer := reply(http.StatusCreated, stageLogin(life))
			answer.Header.Set("X-Subject-Token", stageToken)
			return answer, nil
		case strings.HasSuffix(r.URL.Path, "/servers/detail"):
			return reply(http.StatusOK, `{"servers": []}`), nil
		default:
			return nil, nil //nolint:nilnil // as usual
		}
	}
}

// TestLifesOfTokensThatMeanNothing are not taken for the end of the token.
func TestLifesOfTokensThatMeanNothing(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{0, -time.Hour, 1 << 62} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, tokensOf(life))
			client := s.connect(t)
			for range 10 {
				if _, err := client.ListServers(t.Context(), "tag", time.Hour); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
			}
			if got := s.count("POST /v3/auth/tokens"); got != 1 {
				t.Errorf("a life of %v: %d logins", life, got)
			}
		})
	}
}

// TestDefaultMicroversion: compute_default_microversion is what Nova is asked for.
func TestDefaultMicroversion(t *testing.T) {
	t.Parallel()
	for wanted, says := range map[string]string{"2.79": "", "2.52": "", "2.99": "must be 2.52 to 2.96", "2.26": "must be 2.52 to 2.96", "latest": "must be 2.52 to 2.96"} {
		s := newStage(t, func(*http.Request) (*http.Response, error) { return nil, nil }) //nolint:nilnil // as usual
		s.write(t, fmt.Sprintf(`clouds: {c: {compute_default_microversion: %q, auth: {auth_url: "https://keystone.example", username: u, password: p, project_id: p}}}`, wanted))
		client, err := Connect(t.Context(), s.options())
		if says == "" && (err != nil || client.Microversion().String() != wanted) || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: got %v, want %q", wanted, err, says)
		}
	}
}

// TestATokenThatNovaDoesNotTake was just issued, so it is not the credentials.
func TestATokenThatNovaDoesNotTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/os-keypairs") {
				return reply(http.StatusUnauthorized, `{"error": {"code": 401, "message": "The request you have made requires authentication."}}`), nil
			}
			return nil, nil //nolint:nilnil // as usual
		})
		err := s.connect(t).CheckKeyPair(t.Context(), "n")
		if !errors.Is(err, ErrUnauthorized) || !strings.Contains(err.Error(), "access rules of the application credential lack GET https://nova.example/v2.1/os-keypairs") {
			t.Errorf("got %v", err)
		}
	})
}

// TestSecretsOfProxies: net/http shows the address of a proxy whose address is
// wrong, the password included.
func TestSecretsOfProxies(t *testing.T) {
	t.Parallel()
	for _, proxy := range []string{"http://ci:proxy-passw0rd@proxy.example:3128", "ci:proxy-passw0rd@:bad:port", "https://proxy-passw0rd@proxy"} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t, func(*http.Request) (*http.Response, error) {
				return nil, fmt.Errorf("proxyconnect: invalid proxy address %q", proxy)
			})
			options := s.options()
			options.LookupEnv = environment(map[string]string{"HTTPS_PROXY": proxy})
			if _, err := Connect(t.Context(), options); err == nil || strings.Contains(err.Error(), "proxy-passw0rd") || !strings.Contains(err.Error(), "invalid proxy address") {
				t.Errorf("%s: %v", proxy, err)
			}
		})
	}
}

// TestTokensForNoProject are of no use: servers are made in one.
func TestTokensForNoProject(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(r *http.Request) (*http.Response, error) {
		answer := reply(http.StatusCreated, strings.ReplaceAll(stageLogin(time.Hour), `"project":`, `"domain":`))
		answer.Header.Set("X-Subject-Token", stageToken)
		return answer, nil
	})
	if _, err := Connect(t.Context(), s.options()); err == nil || !strings.Contains(err.Error(), "the token is for no project") {
		t.Errorf("got %v", err)
	}
}

// TestOddLogins: a login ends, and is bounded, whatever Keystone's place answers.
func TestOddLogins(t *testing.T) {
	t.Parallel()
	for name, row := range oddAnswers() {
		if row.fine != "" && strings.Contains(row.fine, "DeleteServer") {
			continue
		}
		for _, created := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", created ", created), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := newStage(t, func(r *http.Request) (*http.Response, error) {
						answer, err := row.answer(r, "token")
						if answer != nil && created && answer.StatusCode == http.StatusOK {
							answer.StatusCode = http.StatusCreated
							answer.Header.Set("X-Subject-Token", stageToken)
						}
						return answer, err
					})
					began := time.Now()
					_, err := Connect(t.Context(), s.options())
					if err == nil {
						t.Fatal("logged in")
					}
					if took := time.Since(began); took > authTimeout+time.Second {
						t.Errorf("took %v", took)
					}
					if s.read > 5*tokenLimit {
						t.Errorf("%d bytes were read", s.read)
					}
					if errors.Is(err, ErrNotFound) || len(err.Error()) > 1500 {
						t.Errorf("got %v", err)
					}
					assertSafe(t, err.Error())
					assertSafe(t, s.logged())
				})
			})
		}
	}
}

// TestATokenOfNoUse is not asked for again with each call: a login that succeeds,
// and leads elsewhere or to a catalogue without Nova, is a login that failed.
func TestATokenOfNoUse(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]*strings.Replacer{
		"another project": strings.NewReplacer(`"id":"p1"`, `"id":"p2"`),
		"no Nova":         strings.NewReplacer(`"compute"`, `"elsewhere"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				first := true
				s := newStage(t, func(r *http.Request) (*http.Response, error) {
					switch {
					case r.URL.Host == "keystone.example" && !first:
						answer := reply(http.StatusCreated, change.Replace(stageLogin(time.Hour)))
						answer.Header.Set("X-Subject-Token", stageToken)
						return answer, nil
					case strings.HasSuffix(r.URL.Path, "/servers/detail"):
						return reply(http.StatusUnauthorized, `{"error": {"message": "no"}}`), nil
					default:
						return nil, nil //nolint:nilnil // as usual
					}
				})
				client := s.connect(t)
				first = false
				for started := time.Now(); time.Since(started) < 10*time.Minute; <-time.After(2 * time.Second) {
					if _, err := client.ListServers(t.Context(), "tag", time.Hour); err == nil {
						t.Fatal("listed")
					}
				}
				if got := s.count("POST /v3/auth/tokens"); got > 60 {
					t.Errorf("%d logins in ten minutes", got)
				}
			})
		})
	}
}
