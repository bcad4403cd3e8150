package main

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/radome-io/fleeting-plugin-openstack/internal/durable"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

type settings struct {
	listen, dir, user     string
	sshPort               int
	build, remove, tokens time.Duration
	quiet                 bool
}

// run serves until ctx ends and gives the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	set, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "openstack-simulator:", err)
		return exitUsage
	}
	if err := serve(ctx, set, stdout, stderr); err != nil {
		_, _ = fmt.Fprintln(stderr, "openstack-simulator:", err)
		return exitFailed
	}
	return 0
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var set settings
	flags := flag.NewFlagSet("openstack-simulator", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&set.listen, "listen", "127.0.0.1:5000", "`address` of the API, on loopback; port 0 picks a free one")
	flags.StringVar(&set.dir, "dir", "openstack-simulator", "`folder` for clouds.yaml, config.toml and the key of the key pair, made if missing")
	flags.StringVar(&set.user, "ssh-user", "", "the only user `name` that servers know; any unless given")
	flags.IntVar(&set.sshPort, "ssh-port", 0, "`port` of SSH on every server's address; 22 needs root, 0 picks a free one")
	flags.DurationVar(&set.build, "build-time", 2*time.Second, "time from a create to ACTIVE")
	flags.DurationVar(&set.remove, "delete-time", time.Second, "time a deletion takes")
	flags.DurationVar(&set.tokens, "token-life", time.Hour, "life of a token")
	flags.BoolVar(&set.quiet, "quiet", false, "do not log the calls")
	if err := flags.Parse(args); err != nil {
		return set, err
	}
	if flags.NArg() > 0 {
		return set, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	host, _, err := net.SplitHostPort(set.listen)
	if err != nil {
		return set, fmt.Errorf("--listen: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return set, fmt.Errorf("--listen %s: the simulator's servers run any command they are given; it serves on loopback only", set.listen)
	}
	return set, nil
}

func serve(ctx context.Context, set settings, stdout, stderr io.Writer) (err error) {
	// First of all, so that a second start leaves the files of the first alone.
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", set.listen)
	if err != nil {
		return fmt.Errorf("%w; choose another address with --listen, or end what listens there", err)
	}
	defer func() { _ = listener.Close() }()
	if err := os.MkdirAll(set.dir, 0o700); err != nil {
		return err
	}
	keyFile := filepath.Join(set.dir, "id_ed25519")
	public, err := writeKey(keyFile)
	if err != nil {
		return err
	}
	sim, err := newSimulator(set, public, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	url := "http://" + listener.Addr().String()
	cloudsFile := filepath.Join(set.dir, "clouds.yaml")
	entry := runnerEntry{user: cmp.Or(set.user, "runner"), port: sim.SSHPort(), clouds: cloudsFile, key: keyFile}
	if err := errors.Join(
		durable.WriteFile(cloudsFile, sim.CloudsYAML(url), 0o600),
		durable.WriteFile(filepath.Join(set.dir, "config.toml"), []byte(entry.toml()), 0o600),
	); err != nil {
		return err
	}
	// Whoever waits for the first line finds the files, and is answered.
	explain(stdout, url, entry)
	server := &http.Server{Handler: sim, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func newSimulator(set settings, public string, log io.Writer) (*openstacksim.Simulator, error) {
	seed := openstacksim.DefaultSeed()
	seed.KeyPairs = []openstacksim.KeyPair{{Name: "fleeting", PublicKey: public}}
	// Clients refuse an image's name that two have; the first is the older twin.
	seed.Images = seed.Images[1:]
	options := openstacksim.Options{
		Seed: &seed, BuildTime: atOnce(set.build), DeleteTime: atOnce(set.remove), TokenLife: set.tokens,
		SSH: &openstacksim.SSH{Port: set.sshPort, User: set.user, AuthorizedKeys: []string{public}},
	}
	if !set.quiet {
		options.Logger = slog.New(slog.NewTextHandler(log, nil))
	}
	return openstacksim.New(options)
}

// atOnce turns no time, as people write it, into what the options call so.
func atOnce(d time.Duration) time.Duration {
	if d <= 0 {
		return -1
	}
	return d
}

// writeKey makes a key pair afresh and gives its public half.
func writeKey(file string) (string, error) {
	publicKey, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "openstack-simulator")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		return "", err
	}
	key, err := ssh.NewPublicKey(publicKey)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

// runnerEntry is how a runner uses this cloud.
type runnerEntry struct {
	user        string
	port        int
	clouds, key string
}

// toml is the part of a runner's config.toml that is about the cloud.
func (e runnerEntry) toml() string {
	return fmt.Sprintf(`[runners.autoscaler.plugin_config]
  cloud = "%s"
  clouds_config = "%s"
  name = "runner"
  [runners.autoscaler.plugin_config.server]
    flavor = "m1.small"
    image = "Ubuntu 24.04"
    networks = ["private"]
    key_name = "fleeting"
[runners.autoscaler.connector_config]
  username = "%s"
  protocol_port = %d
  key_path = "%s"
  use_static_credentials = true
`, openstacksim.CloudPassword, e.clouds, e.user, e.port, e.key)
}

func explain(out io.Writer, url string, e runnerEntry) {
	_, _ = fmt.Fprintf(out, `An OpenStack cloud in memory answers at %[1]s until you press Ctrl-C.

For any OpenStack client:
    export OS_CLIENT_CONFIG_FILE=%[2]s OS_CLOUD=%[3]s
    openstack server create --flavor m1.small --image "Ubuntu 24.04" --network private --key-name fleeting first

For the plugin, in the runner's config.toml:
    %[4]s
Every server answers SSH on its own loopback address, as its "private" address says:
    ssh -p %[5]d -i %[6]s %[7]s@127.10.x.y
What you run there really runs on this machine, as you, in a folder that goes with the server.
`, url, e.clouds, openstacksim.CloudPassword, strings.TrimSuffix(strings.ReplaceAll(e.toml(), "\n", "\n    "), "    "), e.port, e.key, e.user)
}
