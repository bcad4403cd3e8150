package cloud

import (
	"context"
	"net/http/httptrace"
	"sync"
)

// progress is how far the last request of an attempt got. A request that was
// replayed, after a 401 or by net/http, counts anew.
type progress struct {
	mu                 sync.Mutex
	connected, written bool
}

// watch returns a context that has the transport tell.
func (p *progress) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { p.set(true, false) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			// An error here means that the connection took a part only.
			p.set(true, info.Err == nil)
		},
	})
}

func (p *progress) set(connected, written bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.connected, p.written = connected, written
}

// incomplete reports whether a connection was there and did not take the whole
// request. No service acts on a part of a JSON body. A transport that does not
// tell leaves it open.
func (p *progress) incomplete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connected && !p.written
}
