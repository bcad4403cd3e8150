// Package server stands in for the wrapper's gRPC server: it does not listen.
package server

import "net"

// Server does nothing.
type Server struct{}

// New returns a server that does nothing.
func New(any, any) *Server { return &Server{} }

// Listen closes the listener.
func (*Server) Listen(listener net.Listener) { _ = listener.Close() }

// Stop does nothing.
func (*Server) Stop() {}
