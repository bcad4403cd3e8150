package ociregistry

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

// probeTimeout is how long a server on loopback may take to show that it speaks
// TLS.
const probeTimeout = 3 * time.Second

// schemes says which registries are spoken to without TLS.
//
// That is what a host is named for, and what runs on loopback: there are
// registries for development there, and the near ends of tunnels to real ones.
// So a server there is asked, and plain HTTP is used only if it has no TLS. Where
// anything says that the host has TLS, it must.
type schemes struct {
	// plain and tls are the hosts, with their port if any, for which it is said.
	plain, tls map[string]bool
	// probe has the TLS settings; nil, with a transport of the caller's, means that
	// nothing is asked.
	probe  *hostTransport
	logger *slog.Logger

	mu      sync.Mutex
	decided map[string]bool
}

// plainHTTP says whether a host is spoken to without TLS.
func (s *schemes) plainHTTP(ctx context.Context, host string) (bool, error) {
	switch name := strings.ToLower(host); {
	case s.plain[name]:
		return true, nil
	case s.tls[name] || !isLoopback(host):
		return false, nil
	case s.probe == nil:
		return true, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if plain, ok := s.decided[host]; ok {
		return plain, nil
	}
	transport, said, err := s.probe.of(host)
	if said || err != nil {
		return false, err
	}
	plain, err := speaksNoTLS(ctx, host, transport.TLSClientConfig)
	if err != nil {
		return true, nil // the request itself fails, and says how
	}
	s.logger.Debug("registry on loopback", "host", host, "plain_http", plain)
	s.decided[host] = plain
	return plain, nil
}

// speaksNoTLS shakes hands with a server, and fails if there is none.
func speaksNoTLS(ctx context.Context, host string, cfg *tls.Config) (bool, error) {
	within, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	address := host
	if _, _, err := net.SplitHostPort(host); err != nil {
		address = net.JoinHostPort(strings.Trim(host, "[]"), "443")
	}
	conn, err := new(net.Dialer).DialContext(within, "tcp", address)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	cfg = cfg.Clone()
	cfg.ServerName, _, _ = net.SplitHostPort(address)
	err = tls.Client(conn, cfg).HandshakeContext(within)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	// A server that refuses the handshake, or whose certificate is not trusted,
	// speaks TLS. One that answers with something else, hangs up or goes on waiting
	// for a request does not.
	_, other := errors.AsType[tls.RecordHeaderError](err)
	return other || brokeOff(err) || within.Err() != nil, nil
}

func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return ip != nil && ip.IsLoopback()
}
