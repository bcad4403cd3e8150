// Package guest is the inside of the simulator's servers: SSH on each one's own
// address, and a shell that really runs commands, in a folder per server.
//
// It is no sandbox: the commands run as the user of this process. It knows no
// OpenStack; who answers on an address it asks.
package guest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Options say how servers answer SSH.
type Options struct {
	// Port is the TCP port on each server's own address. 22 needs root; 0 picks
	// one free port that all servers of the simulator share.
	Port int
	// User is the only user name accepted; empty accepts any.
	User string
	// Password is accepted when it is not empty.
	Password string
	// AuthorizedKeys are accepted on every server, in the format of
	// authorized_keys. The key pair of a server is accepted besides.
	AuthorizedKeys []string
	// Dir is where the servers' folders are made; empty means the system's
	// folder of temporary files.
	Dir string
}

// Guest is the server that answers on an address.
type Guest struct {
	// ID names its folder.
	ID, Name string
	// PublicKey is that of its key pair; may be empty.
	PublicKey string

	user string // who is logged in
}

// Port is the TCP port on which servers answer SSH.
func (sh *Shells) Port() int { return sh.port }

// Shells are the SSH servers of a simulator, one listener per address.
type Shells struct {
	options Options
	port    int
	keys    [][]byte
	host    ssh.Signer
	login   func(netip.Addr) (Guest, bool)
	root    string
	ctx     context.Context //nolint:containedctx // the life of the servers, ended by Close
	cancel  context.CancelFunc
	wait    sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners map[netip.Addr]net.Listener
	sessions  map[string]map[*Guest]context.CancelFunc // by server
}

// ErrPort says that servers could not answer SSH on the port asked for.
var ErrPort = errors.New("openstacksim: port for SSH")

// New makes the SSH servers of a simulator. The first address of their
// network, which no server gets, is where the port is tried out.
func New(options Options, first netip.Addr, login func(netip.Addr) (Guest, bool)) (*Shells, error) {
	sh := &Shells{
		options: options, port: options.Port, login: login,
		listeners: map[netip.Addr]net.Listener{}, sessions: map[string]map[*Guest]context.CancelFunc{},
	}
	for _, line := range options.AuthorizedKeys {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("openstacksim: authorized key %.40q: %w", line, err)
		}
		sh.keys = append(sh.keys, key.Marshal())
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("openstacksim: host key: %w", err)
	}
	if sh.host, err = ssh.NewSignerFromKey(private); err != nil {
		return nil, fmt.Errorf("openstacksim: host key: %w", err)
	}
	if sh.port == 0 {
		first = netip.MustParseAddr("127.0.0.1")
	}
	if sh.port, err = tryPort(first, sh.port); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPort, err)
	}
	if sh.root, err = os.MkdirTemp(options.Dir, "openstack-simulator-"); err != nil {
		return nil, fmt.Errorf("openstacksim: folder of the servers: %w", err)
	}
	sh.ctx, sh.cancel = context.WithCancel(context.Background())
	return sh, nil
}

// tryPort listens on an address for a moment, and returns the port, which is a
// free one for 0. A program that listens on the port of all addresses keeps
// servers from theirs.
func tryPort(address netip.Addr, port int) (int, error) {
	if !address.IsLoopback() {
		return port, nil // nothing will listen there
	}
	listener, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, uint16(port))))
	if err != nil {
		return 0, err
	}
	found := listener.Addr().(*net.TCPAddr).Port //nolint:errcheck,forcetypeassert // it is TCP
	return found, listener.Close()
}

// Listen starts answering on an address.
func (sh *Shells) Listen(address netip.Addr) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return net.ErrClosed
	}
	var config net.ListenConfig
	listener, err := config.Listen(sh.ctx, "tcp4", net.JoinHostPort(address.String(), strconv.Itoa(sh.port)))
	if err != nil {
		return fmt.Errorf("listening for SSH: %w", err)
	}
	sh.listeners[address] = listener
	sh.wait.Go(func() { sh.accept(address, listener) })
	return nil
}

// Unlisten ends that.
func (sh *Shells) Unlisten(address netip.Addr) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if listener := sh.listeners[address]; listener != nil {
		_ = listener.Close()
		delete(sh.listeners, address)
	}
}

func (sh *Shells) accept(address netip.Addr, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		sh.wait.Go(func() { sh.serve(address, conn) })
	}
}

// serve answers one connection. Before its server runs, it just hangs up.
func (sh *Shells) serve(address netip.Addr, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	who, up := sh.login(address)
	if !up {
		return
	}
	ctx, cancel := context.WithCancel(sh.ctx)
	defer cancel()
	defer sh.enter(&who, cancel)()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	server, channels, requests, err := ssh.NewServerConn(conn, sh.config(who))
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go ssh.DiscardRequests(requests)
	who.user = server.User()
	for incoming := range channels {
		if incoming.ChannelType() != "session" {
			_ = incoming.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		channel, requests, err := incoming.Accept()
		if err != nil {
			return
		}
		sh.wait.Go(func() { sh.session(ctx, who, channel, requests) })
	}
}

var errDenied = errors.New("openstacksim: permission denied")

func (sh *Shells) config(who Guest) *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(meta ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if sh.knowsUser(meta.User()) && sh.knowsKey(who, key.Marshal()) {
				return &ssh.Permissions{}, nil
			}
			return nil, errDenied
		},
	}
	if sh.options.Password != "" {
		config.PasswordCallback = func(meta ssh.ConnMetadata, password []byte) (*ssh.Permissions, error) {
			right := subtle.ConstantTimeCompare(password, []byte(sh.options.Password)) == 1
			if sh.knowsUser(meta.User()) && right {
				return &ssh.Permissions{}, nil
			}
			return nil, errDenied
		}
	}
	config.AddHostKey(sh.host)
	return config
}

func (sh *Shells) knowsUser(name string) bool {
	return sh.options.User == "" || sh.options.User == name
}

func (sh *Shells) knowsKey(who Guest, key []byte) bool {
	for _, known := range sh.keys {
		if bytes.Equal(known, key) {
			return true
		}
	}
	own, _, _, _, err := ssh.ParseAuthorizedKey([]byte(who.PublicKey))
	return err == nil && bytes.Equal(own.Marshal(), key)
}

// enter lets the end of a server cancel a connection; the function returned undoes it.
func (sh *Shells) enter(who *Guest, cancel context.CancelFunc) (leave func()) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.sessions[who.ID] == nil {
		sh.sessions[who.ID] = map[*Guest]context.CancelFunc{}
	}
	sh.sessions[who.ID][who] = cancel
	return func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		delete(sh.sessions[who.ID], who)
	}
}

// Forget ends what runs on a server and removes its folder.
func (sh *Shells) Forget(server string) {
	sh.mu.Lock()
	for _, cancel := range sh.sessions[server] {
		cancel()
	}
	delete(sh.sessions, server)
	sh.mu.Unlock()
	// What it can not remove yet, Close does.
	_ = os.RemoveAll(sh.folder(server))
}

// Close ends all servers, with what runs on them, and removes their folders.
func (sh *Shells) Close() error {
	sh.mu.Lock()
	sh.closed = true
	for address, listener := range sh.listeners {
		_ = listener.Close()
		delete(sh.listeners, address)
	}
	sh.mu.Unlock()
	sh.cancel()
	sh.wait.Wait()
	if err := os.RemoveAll(sh.root); err != nil {
		return fmt.Errorf("removing the servers' folders: %w", err)
	}
	return nil
}
