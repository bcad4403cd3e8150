package openstacksim

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

// guest is the server that answers on an address.
type guest struct {
	server     string // ID
	publicKey  string // of its key pair; may be empty
	userName   string
	serverName string
}

// mayLogin tells which server answers SSH on an address at present, if any.
func (s *Simulator) mayLogin(address netip.Addr) (guest, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	for _, p := range s.ports {
		if p.ipv4 != address && !s.floatsTo(address, p) {
			continue
		}
		srv := s.servers[p.device]
		if srv == nil || srv.vm != vmActive || s.present.Before(srv.launched.Add(s.options.BootTime)) {
			return guest{}, false
		}
		key, _ := s.findKeyPair(srv.user, srv.keyName)
		return guest{server: srv.id, publicKey: key.PublicKey, serverName: srv.name}, true
	}
	return guest{}, false
}

func (s *Simulator) floatsTo(address netip.Addr, p *port) bool {
	for _, f := range s.floatingIPs {
		if f.address == address && f.port == p.id {
			return true
		}
	}
	return false
}

// SSHPort is the port on which servers answer SSH; 0 without SSH.
func (s *Simulator) SSHPort() int {
	if s.shells == nil {
		return 0
	}
	return s.shells.port
}

// shells are the SSH servers of a simulator, one listener per address.
type shells struct {
	options SSH
	port    int
	keys    [][]byte
	host    ssh.Signer
	login   func(netip.Addr) (guest, bool)
	root    string
	ctx     context.Context //nolint:containedctx // the life of the servers, ended by close
	cancel  context.CancelFunc
	wait    sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners map[netip.Addr]net.Listener
	sessions  map[string]map[*guest]context.CancelFunc // by server
}

// ErrSSHPort says that servers could not answer SSH on the port asked for.
var ErrSSHPort = errors.New("openstacksim: port for SSH")

// newShells makes the SSH servers of a simulator. The first address of their
// network, which no server gets, is where the port is tried out.
func newShells(options SSH, first netip.Addr, login func(netip.Addr) (guest, bool)) (*shells, error) {
	sh := &shells{
		options: options, port: options.Port, login: login,
		listeners: map[netip.Addr]net.Listener{}, sessions: map[string]map[*guest]context.CancelFunc{},
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
		sh.port, err = freePort()
	} else {
		err = tryPort(first, sh.port)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSSHPort, err)
	}
	if sh.root, err = os.MkdirTemp(options.Dir, "openstack-simulator-"); err != nil {
		return nil, fmt.Errorf("openstacksim: folder of the servers: %w", err)
	}
	sh.ctx, sh.cancel = context.WithCancel(context.Background())
	return sh, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		return 0, err
	}
	defer func() { _ = listener.Close() }()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("no TCP: %s", listener.Addr())
	}
	return address.Port, nil
}

// tryPort listens on an address for a moment. What listens on a port of all
// addresses keeps servers from theirs.
func tryPort(address netip.Addr, port int) error {
	if !address.IsLoopback() {
		return nil // nothing will listen there
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(address.String(), strconv.Itoa(port))) //nolint:noctx // at once
	if err != nil {
		return err
	}
	return listener.Close()
}

// listen starts answering on an address.
func (sh *shells) listen(address netip.Addr) error {
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

func (sh *shells) unlisten(address netip.Addr) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if listener := sh.listeners[address]; listener != nil {
		_ = listener.Close()
		delete(sh.listeners, address)
	}
}

func (sh *shells) accept(address netip.Addr, listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		sh.wait.Go(func() { sh.serve(address, conn) })
	}
}

// serve answers one connection. Before its server runs, it just hangs up.
func (sh *shells) serve(address netip.Addr, conn net.Conn) {
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
	who.userName = server.User()
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

func (sh *shells) config(who guest) *ssh.ServerConfig {
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

func (sh *shells) knowsUser(name string) bool {
	return sh.options.User == "" || sh.options.User == name
}

func (sh *shells) knowsKey(who guest, key []byte) bool {
	for _, known := range sh.keys {
		if bytes.Equal(known, key) {
			return true
		}
	}
	own, _, _, _, err := ssh.ParseAuthorizedKey([]byte(who.publicKey))
	return err == nil && bytes.Equal(own.Marshal(), key)
}

// enter lets the end of a server cancel a connection; the function returned undoes it.
func (sh *shells) enter(who *guest, cancel context.CancelFunc) (leave func()) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.sessions[who.server] == nil {
		sh.sessions[who.server] = map[*guest]context.CancelFunc{}
	}
	sh.sessions[who.server][who] = cancel
	return func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		delete(sh.sessions[who.server], who)
	}
}

// forget ends what runs on a server and removes its folder.
func (sh *shells) forget(server string) {
	sh.mu.Lock()
	for _, cancel := range sh.sessions[server] {
		cancel()
	}
	delete(sh.sessions, server)
	sh.mu.Unlock()
	// What it can not remove yet, close does.
	_ = os.RemoveAll(sh.folder(server))
}

func (sh *shells) close() error {
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
