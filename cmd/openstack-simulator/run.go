package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/flagtext"
	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

const (
	program = "openstack-simulator"

	exitFailed = 1
	exitUsage  = 2

	maxPort = 65535
)

type settings struct {
	listen, dir, user     string
	sshPort               uint
	build, remove, tokens span
	quiet                 bool
	faults                faultFlag
}

// run serves until ctx ends and gives the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	set, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintf(stdout, "Usage of %s:\n", program)
		flagtext.Print(stdout, new(settings).flags())
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", program, err)
		return exitUsage
	}
	if err := serve(ctx, set, stdout, stderr); err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", program, err)
		return exitFailed
	}
	return 0
}

// span is a duration of the command line.
type span time.Duration

// Set implements flag.Value.
func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("a duration has a unit, such as 5s or 2m")
	case d < 0:
		return errors.New("a duration is not negative")
	}
	*s = span(d)
	return nil
}

// String implements flag.Value.
func (s *span) String() string { return time.Duration(*s).String() }

func (set *settings) flags() *flag.FlagSet {
	set.build, set.remove, set.tokens = span(2*time.Second), span(time.Second), span(time.Hour)
	flags := flag.NewFlagSet(program, flag.ContinueOnError)
	flags.StringVar(&set.listen, "listen", "127.0.0.1:5000", "`address` of the API, on loopback; port 0 picks a free one")
	flags.StringVar(&set.dir, "dir", program, "`folder` for clouds.yaml, config.toml and the key of the key pair, made if missing")
	flags.StringVar(&set.user, "ssh-user", "", "the only user `name` that servers know; any unless given")
	flags.UintVar(&set.sshPort, "ssh-port", 0, "`port` of SSH on every server's address; 22 needs root, 0 picks a free one")
	flags.Var(&set.build, "build-time", "`time` from a create to ACTIVE")
	flags.Var(&set.remove, "delete-time", "`time` a deletion takes")
	flags.Var(&set.tokens, "token-life", "`time` that a token is good for")
	flags.Var(&set.faults, "fault", "`fault` that happens, as KIND[:RATE][,SETTING=VALUE...]; can be given several times")
	flags.BoolVar(&set.quiet, "quiet", false, "do not log the calls")
	return flags
}

func parse(args []string) (settings, error) {
	var set settings
	flags := set.flags()
	if len(args) == 1 && args[0] == "help" {
		return set, flag.ErrHelp
	}
	if err := flagtext.Parse(flags, args); err != nil {
		return set, err
	}
	if flags.NArg() > 0 {
		return set, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if set.sshPort > maxPort {
		return set, fmt.Errorf("--ssh-port %d: ports end at %d", set.sshPort, maxPort)
	}
	host, port, err := net.SplitHostPort(set.listen)
	if err != nil {
		return set, fmt.Errorf("--listen: %w; write it as 127.0.0.1:5000", err)
	}
	if number, err := strconv.Atoi(port); err != nil || number < 0 || number > maxPort {
		return set, fmt.Errorf("--listen %s: a port is a number of at most %d", set.listen, maxPort)
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
	key, public, err := newKey()
	if err != nil {
		return err
	}
	sim, err := newSimulator(set, public, stderr)
	if errors.Is(err, openstacksim.ErrSSHPort) {
		return fmt.Errorf("%w; choose another port with --ssh-port, or end what listens there", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sim.Close()) }()
	home, err := enter(set.dir)
	if err != nil {
		return err
	}
	defer home.leave()
	url := "http://" + listener.Addr().String()
	entry := runnerEntry{
		user: cmp.Or(set.user, "runner"), port: sim.SSHPort(), clouds: home.file("clouds.yaml"), key: home.file("id_ed25519"), plugin: pluginBeside(os.Executable),
	}
	if err := errors.Join(
		home.write("id_ed25519", key), home.write("clouds.yaml", sim.CloudsYAML(url)), home.write("config.toml", []byte(entry.toml())),
	); err != nil {
		return err
	}
	// Whoever waits for the first line finds the files, and is answered.
	explain(stdout, url, home.file("config.toml"), entry)
	for _, rule := range set.faults {
		sim.Inject(rule)
	}
	server := &http.Server{Handler: front(sim, faults(sim)), ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	_, _ = fmt.Fprintln(stdout, "\nStopped, and its servers are gone.")
	return nil
}

// front passes calls on: those about faults, and those to the cloud, whose
// clients begin at Keystone. It says what there is to people with a browser.
func front(cloud, faults http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == faultsPath, strings.HasPrefix(r.URL.Path, faultsPath+"/"):
			faults.ServeHTTP(w, r)
			return
		case r.URL.Path != "/":
			cloud.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, "An OpenStack cloud in memory. Clients begin at /identity/v3, as clouds.yaml says. What goes wrong is at "+faultsPath+".")
	})
}

func newSimulator(set settings, public string, log io.Writer) (*openstacksim.Simulator, error) {
	seed := openstacksim.DefaultSeed()
	seed.KeyPairs = []openstacksim.KeyPair{{Name: "fleeting", PublicKey: public}}
	// Clients refuse an image's name that two have; the first is the older twin.
	seed.Images = seed.Images[1:]
	for i := range seed.Images {
		seed.Images[i].Owner = openstacksim.DefaultProject // which may then change their properties
	}
	level := slog.LevelInfo
	if set.quiet {
		level = slog.LevelWarn
	}
	return openstacksim.New(openstacksim.Options{
		Seed: &seed, BuildTime: set.build.orAtOnce(), DeleteTime: set.remove.orAtOnce(), TokenLife: set.tokens.orAtOnce(),
		SSH:    &openstacksim.SSH{Port: int(set.sshPort), User: set.user, AuthorizedKeys: []string{public}},
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})),
	})
}

// orAtOnce turns no time, as people write it, into what the options call so.
func (s *span) orAtOnce() time.Duration {
	if *s == 0 {
		return -1
	}
	return time.Duration(*s)
}
