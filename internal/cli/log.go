package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
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
		if a.Key == "error" {
			reason = ": " + strings.ReplaceAll(a.Value.String(), "\n", "\n  ")
			continue
		}
		facts = append(facts, a.Key+" "+a.Value.String())
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

// WithAttrs implements [slog.Handler].
func (h *peopleHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &peopleHandler{h.Handler.WithAttrs(attrs), h.w, h.mu, append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup implements [slog.Handler]; people are not told of groups.
func (h *peopleHandler) WithGroup(name string) slog.Handler {
	return &peopleHandler{h.Handler.WithGroup(name), h.w, h.mu, h.attrs}
}
