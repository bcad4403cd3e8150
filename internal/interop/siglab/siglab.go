// Package siglab drives the private sigstore on loopback that the interop
// tests and the fixtures are made with: Fulcio, Rekor v1 and v2, a timestamp
// authority, an OIDC issuer, registries, and cosign 2 and 3.
//
// The lab itself is a folder of scripts outside this repository, with `up` and
// `sign-samples` in it, named by SIGSTORE_LAB and otherwise expected at
// ../shared/sigstore-lab beside the repository. Its state lies in
// SIGSTORE_LAB_DIR, by default a folder of the system's temporary folder; its
// programs are built there on first use, which takes a while.
package siglab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Addresses of the lab's services; its scripts fix them.
const (
	Registry          = "127.0.0.1:5700" // without the referrers API
	RegistryReferrers = "127.0.0.1:5701" // with it
	Fulcio            = "http://127.0.0.1:5720"
	Rekor1            = "http://127.0.0.1:5730"
	Rekor2            = "http://127.0.0.1:5750"
	TSA               = "http://127.0.0.1:5740/api/v1/timestamp"
	Issuer            = "http://127.0.0.1:5710/actions"
)

// Subject is the subject of the certificates that [Lab.Token] leads to.
const Subject = "https://github.com/lab-org/lab-plugin/.github/workflows/release.yml@refs/tags/v1.2.3"

// Lab is a lab that runs.
type Lab struct {
	scripts, state string
}

// Open starts the lab where it does not run, building it on first use, and has
// the samples signed where there are none. The log shows what it does.
func Open(ctx context.Context, log io.Writer) (*Lab, error) {
	scripts := os.Getenv("SIGSTORE_LAB")
	if scripts == "" {
		root, err := moduleRoot()
		if err != nil {
			return nil, err
		}
		scripts = filepath.Join(root, "..", "shared", "sigstore-lab")
	}
	if _, err := os.Stat(filepath.Join(scripts, "up")); err != nil { // #nosec G703 -- named by whoever runs the tests
		return nil, fmt.Errorf("the sigstore lab's scripts are not in %s; set SIGSTORE_LAB: %w", scripts, err)
	}
	l := &Lab{scripts: scripts, state: os.Getenv("SIGSTORE_LAB_DIR")}
	if l.state == "" {
		l.state = filepath.Join(os.TempDir(), "sigstore-lab")
	}
	lock := flock.New(l.state + ".lock")
	if err := lock.Lock(); err != nil {
		return nil, fmt.Errorf("locking the lab: %w", err)
	}
	return l, errors.Join(l.start(ctx, log), lock.Close())
}

func (l *Lab) start(ctx context.Context, log io.Writer) error {
	if err := l.script(ctx, log, "up"); err != nil {
		return err
	}
	if _, err := os.Stat(l.Path("samples.tsv")); err != nil {
		return l.script(ctx, log, "sign-samples")
	}
	// The registry with the referrers API forgets its content on a restart.
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, "http://"+RegistryReferrers+"/v2/lab/key-bundle-referrers/manifests/v1.2.3", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("the lab's registry: %w", err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode == http.StatusOK {
		return err
	}
	return l.script(ctx, log, "sign-samples", "referrers|oci11")
}

// Runs says whether somebody has started the lab already. Who finds it running
// leaves it so; who started it may [Lab.Stop] it.
func Runs(ctx context.Context) bool {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", Registry)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// Stop ends the lab's processes and keeps its state. It ends what others use,
// too: it is for who started the lab.
func (l *Lab) Stop(ctx context.Context, log io.Writer) error {
	return l.script(ctx, log, "down")
}

// Path is a file of the lab's state.
func (l *Lab) Path(elem ...string) string {
	return filepath.Join(append([]string{l.state}, elem...)...)
}

func (l *Lab) script(ctx context.Context, log io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(l.scripts, name), args...) // #nosec G204 -- the lab's own scripts
	cmd.Env = append(os.Environ(), "SIGSTORE_LAB_DIR="+l.state)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Cosign runs cosign of a major version, 2 or 3, cut off from the caller's own
// settings, and returns what it printed. An error holds that too.
func (l *Lab) Cosign(ctx context.Context, version int, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.Path("bin", fmt.Sprintf("cosign%d", version)), args...) // #nosec G204 -- the lab's own programs
	cmd.Env = append(os.Environ(), "HOME="+l.Path("home"), "DOCKER_CONFIG="+l.Path("home", ".docker"), "COSIGN_PASSWORD=lab", "COSIGN_YES=true")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("cosign%d %s: %w\n%s", version, strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

// Token gets an identity token for [Subject] from [Issuer].
func (l *Lab) Token(ctx context.Context) (string, error) {
	return l.TokenFor(ctx, "refs/tags/v1.2.3")
}

// TokenFor gets one for the same workflow at another git ref.
func (l *Lab) TokenFor(ctx context.Context, ref string) (string, error) {
	return l.token(ctx, url.Values{"ref": {ref}})
}

// TokenAt gets one for [Subject] that names a commit.
func (l *Lab) TokenAt(ctx context.Context, commit string) (string, error) {
	return l.token(ctx, url.Values{"ref": {"refs/tags/v1.2.3"}, "sha": {commit}})
}

// TokenOf gets one for release.yml of another repository, OWNER/NAME, at a git ref
// and a commit.
func (l *Lab) TokenOf(ctx context.Context, repository, ref, commit string) (string, error) {
	return l.token(ctx, url.Values{"repo": {repository}, "ref": {ref}, "sha": {commit}})
}

func (l *Lab) token(ctx context.Context, q url.Values) (string, error) {
	if !q.Has("repo") {
		q.Set("repo", "lab-org/lab-plugin")
	}
	q.Set("workflow", "release.yml")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, Issuer+"/token?"+q.Encode(), http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("identity token: %w", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("identity token: %s %w", resp.Status, err)
	}
	return strings.TrimSpace(string(raw)), nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("not inside the repository")
	}
}
