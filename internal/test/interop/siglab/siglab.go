// Package siglab drives the private sigstore on loopback that the interop
// tests and the fixtures are made with: Fulcio, Rekor v1 and v2, a timestamp
// authority, an OIDC issuer, registries, and cosign 2 and 3.
//
// The lab itself is lab/sigstore, or the folder that SIGSTORE_LAB names. Its state
// lies in SIGSTORE_LAB_DIR, by default a folder of the system's temporary folder;
// its programs are built there on first use, which takes a while.
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
	"sync"
	"time"

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

// answerTime is how long a service of the lab may take for an answer on a busy
// machine.
const answerTime = 30 * time.Second

// Subject is the subject of the certificates that [Lab.Token] leads to.
const Subject = "https://github.com/lab-org/lab-plugin/.github/workflows/release.yml@refs/tags/v1.2.3"

// Lab is a lab that runs.
type Lab struct {
	scripts, state string
}

// opened is the lab that this process has seen running: its scripts look at
// every program and service, which takes seconds on a busy machine.
var opened struct { //nolint:gochecknoglobals // once in a process
	sync.Mutex
	lab *Lab
}

// Open starts the lab where it does not run, building it on first use, and has
// the samples signed where there are none. The log shows what it does. It does
// so once in a process.
func Open(ctx context.Context, log io.Writer) (*Lab, error) {
	opened.Lock()
	defer opened.Unlock()
	if opened.lab != nil {
		return opened.lab, nil
	}
	l, err := open(ctx, log)
	if err != nil {
		return nil, err
	}
	opened.lab = l
	return l, nil
}

func open(ctx context.Context, log io.Writer) (*Lab, error) {
	scripts := os.Getenv("SIGSTORE_LAB")
	if scripts == "" {
		root, err := moduleRoot()
		if err != nil {
			return nil, err
		}
		scripts = filepath.Join(root, "lab", "sigstore")
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
	if err := l.answers(ctx); err != nil {
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

// answers asks every service for something: a process that runs need not answer.
func (l *Lab) answers(ctx context.Context) error {
	client := http.Client{Timeout: answerTime, Transport: &http.Transport{DisableKeepAlives: true}}
	var failed []error
	for name, address := range map[string]string{
		"registry": "http://" + Registry + "/v2/", "registry11": "http://" + RegistryReferrers + "/v2/",
		"oidc": Issuer + "/keys", "fulcio": Fulcio + "/healthz", "rekor1": Rekor1 + "/api/v1/log/publicKey", "rekor2": Rekor2 + "/healthz",
		"tsa": strings.TrimSuffix(TSA, "/api/v1/timestamp") + "/ping",
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				continue
			}
			err = fmt.Errorf("%s: %s", address, resp.Status)
		}
		failed = append(failed, fmt.Errorf("the lab's %s (log: %s): %w", name, l.Path("log", name+".log"), err))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("%w\n%s ends the lab, the next run starts it anew", err, filepath.Join(l.scripts, "down"))
	}
	return nil
}

// script runs one of the lab's scripts. The error has the end of what it said.
func (l *Lab) script(ctx context.Context, log io.Writer, name string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(l.scripts, name), args...) // #nosec G204 -- the lab's own scripts
	cmd.Env = append(os.Environ(), "SIGSTORE_LAB_DIR="+l.state)
	cmd.Stdout = io.MultiWriter(log, &said)
	cmd.Stderr = cmd.Stdout
	cmd.WaitDelay = answerTime // what a script started may keep its output open
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s of the lab, whose logs are in %s: %w\n%s", name, l.Path("log"), err, lastLines(said.String()))
	}
	return nil
}

// lastLines is the end of a text, where programs say why they failed.
func lastLines(text string) string {
	const enough = 12
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-enough):], "\n")
}

// Cosign runs cosign of a major version, 2 or 3, cut off from the caller's own
// settings, and returns what it printed. An error holds that too.
//
// Cosign 2 takes --trusted-root for bundles alone and for keys; without it, its
// variables name the roots of the lab. It verifies bundles wherever it finds one
// beside the image, even with --new-bundle-format=false, and does not look at
// the tags then.
func (l *Lab) Cosign(ctx context.Context, version int, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, l.Path("bin", fmt.Sprintf("cosign%d", version)), args...) // #nosec G204 -- the lab's own programs
	cmd.Env = append(os.Environ(), "HOME="+l.Path("home"), "DOCKER_CONFIG="+l.Path("home", ".docker"), "COSIGN_PASSWORD=lab", "COSIGN_YES=true")
	if version == 2 {
		cmd.Env = append(cmd.Env, "SIGSTORE_ROOT_FILE="+l.Path("keys", "fulcio-root.pem"),
			"SIGSTORE_REKOR_PUBLIC_KEY="+l.Path("keys", "rekor1.key.pub"), "SIGSTORE_TSA_CERTIFICATE_FILE="+l.Path("keys", "tsa-chain.pem"))
	}
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
