package openstacksim_test

import (
	"bytes"
	"crypto/ed25519"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

func dial(address string, port int, auth ssh.AuthMethod) (*ssh.Client, error) {
	return ssh.Dial("tcp", net.JoinHostPort(address, strconv.Itoa(port)), &ssh.ClientConfig{
		User: "runner", Auth: []ssh.AuthMethod{auth}, Timeout: 10 * time.Second,
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
}

func run(t *testing.T, connection *ssh.Client, command, input string) (string, error) {
	t.Helper()
	session, err := connection.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	var output bytes.Buffer
	session.Stdout = &output
	session.Stdin = strings.NewReader(input)
	err = session.Run(command)
	return output.String(), err
}

func TestServersAnswerSSH(t *testing.T) {
	t.Parallel()
	sim := newSimulator(t, openstacksim.Options{
		BuildTime: -1, DeleteTime: -1,
		SSH: &openstacksim.SSH{User: "runner", Password: "secret", Dir: t.TempDir()},
	})
	c := newClient(t, sim)
	signer, public := newKey(t)
	c.want(http.StatusCreated, http.MethodPost, "/compute/v2.1/os-keypairs", map[string]any{"keypair": map[string]any{
		"name": "mine", "type": "ssh", "public_key": public,
	}})
	ids := []string{c.create("one", map[string]any{"key_name": "mine"}), c.create("two", nil)}
	var addresses []string
	for _, id := range ids {
		for _, a := range list(object(c.server(id)["addresses"])["private"]) {
			if strings.HasPrefix(text(a["addr"]), "127.") {
				addresses = append(addresses, text(a["addr"]))
			}
		}
	}
	if len(addresses) != 2 || addresses[0] == addresses[1] {
		t.Fatalf("addresses %v", addresses)
	}
	one, err := dial(addresses[0], sim.SSHPort(), ssh.PublicKeys(signer))
	if err != nil {
		t.Fatal(err)
	}
	two, err := dial(addresses[1], sim.SSHPort(), ssh.Password("secret"))
	if err != nil {
		t.Fatal(err)
	}
	if output, err := run(t, one, "ls -A; cat > left; echo \"$USER@$HOSTNAME\"; exit 3", "some input"); output != "runner@one\n" || exitCode(err) != 3 {
		t.Errorf("output %q, error %v", output, err)
	}
	if output, err := run(t, one, "cat left", ""); output != "some input" || err != nil {
		t.Errorf("output %q, error %v", output, err)
	}
	if output, err := run(t, two, "ls -A", ""); output != "" || err != nil {
		t.Errorf("the folders are not apart: output %q, error %v", output, err)
	}
	if _, err := dial(addresses[1], sim.SSHPort(), ssh.PublicKeys(signer)); err == nil {
		t.Error("a key pair of another server was accepted")
	}
	if _, err := dial(addresses[0], sim.SSHPort(), ssh.Password("wrong")); err == nil {
		t.Error("a wrong password was accepted")
	}
	c.want(http.StatusNoContent, http.MethodDelete, "/compute/v2.1/servers/"+ids[0], nil)
	c.want(http.StatusNotFound, http.MethodGet, "/compute/v2.1/servers/"+ids[0], nil)
	if _, err := dial(addresses[0], sim.SSHPort(), ssh.Password("secret")); err == nil {
		t.Error("a deleted server answers")
	}
	if output, err := run(t, two, "echo still here", ""); output != "still here\n" || err != nil {
		t.Errorf("the other server: output %q, error %v", output, err)
	}
}

func exitCode(err error) int {
	exit, isExit := err.(*ssh.ExitError) //nolint:errorlint // as the session returns it
	if !isExit {
		return -1
	}
	return exit.ExitStatus()
}

func newKey(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(ssh.MarshalAuthorizedKey(signer.PublicKey()))
}

// TestAServerThatCannotAnswerIsLogged: its fault says only that it has no
// network, so why is in the log.
func TestAServerThatCannotAnswerIsLogged(t *testing.T) {
	t.Parallel()
	var log logBook
	sim := newSimulator(t, openstacksim.Options{
		BuildTime: -1, DeleteTime: -1, SSH: &openstacksim.SSH{Dir: t.TempDir()},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	var config net.ListenConfig
	other, err := config.Listen(t.Context(), "tcp4", net.JoinHostPort("0.0.0.0", strconv.Itoa(sim.SSHPort())))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	c := newClient(t, sim)
	id := c.create("one", nil)
	if status := text(c.server(id)["status"]); status != "ERROR" {
		t.Errorf("status %s", status)
	}
	if !strings.Contains(log.String(), "no server can answer SSH on the port") || !strings.Contains(log.String(), "address already in use") {
		t.Errorf("log:\n%s", log.String())
	}
}

// logBook keeps what is logged.
type logBook struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
