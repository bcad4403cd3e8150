package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// peopleHandler writes warnings and errors of libraries as the tools write their
// own, and leaves debug records to another handler.
type peopleHandler struct {
	slog.Handler // for what is below a warning

	w     io.Writer
	mu    *sync.Mutex
	attrs []slog.Attr
}

// Handle implements [slog.Handler].
func (h *peopleHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	attrs := h.attrs
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(slices.Clip(attrs), a)
		return true
	})
	var facts []string
	reason := ""
	for _, a := range attrs {
		value := redacted(nil, a).Value.String()
		if a.Key == "error" {
			reason = ": " + strings.ReplaceAll(value, "\n", "\n  ")
			continue
		}
		facts = append(facts, a.Key+" "+plaintext.Line(value))
	}
	text := r.Message
	if len(facts) > 0 {
		text += " (" + strings.Join(facts, ", ") + ")"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := fmt.Fprintf(h.w, "warning: %s%s\n", text, reason)
	return err
}

// redacted is an attribute without the secrets that addresses have in them.
func redacted(_ []string, a slog.Attr) slog.Attr {
	if kind := a.Value.Kind(); kind == slog.KindString || kind == slog.KindAny {
		a.Value = slog.StringValue(plaintext.Redact(a.Value.String()))
	}
	return a
}

// WithAttrs implements [slog.Handler].
func (h *peopleHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &peopleHandler{h.Handler.WithAttrs(attrs), h.w, h.mu, append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup implements [slog.Handler]; people are not told of groups.
func (h *peopleHandler) WithGroup(name string) slog.Handler {
	return &peopleHandler{h.Handler.WithGroup(name), h.w, h.mu, h.attrs}
}
