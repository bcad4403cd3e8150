package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// peopleHandler writes warnings and errors of libraries as the tools write their
// own, and leaves debug records to another handler: one of JSON with --output json.
type peopleHandler struct {
	app        *App
	text, json slog.Handler // for what is below a warning
	attrs      []slog.Attr
}

func newLogger(a *App) *slog.Logger {
	opts := &slog.HandlerOptions{Level: &a.level, ReplaceAttr: redacted}
	return slog.New(&peopleHandler{app: a, text: slog.NewTextHandler(a.Err, opts), json: slog.NewJSONHandler(a.Err, opts)})
}

// Enabled implements [slog.Handler].
func (h *peopleHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.text.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (h *peopleHandler) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Level < slog.LevelWarn && h.app.Output == JSON:
		return h.json.Handle(ctx, r)
	case r.Level < slog.LevelWarn:
		return h.text.Handle(ctx, r)
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
	h.app.warn(text + reason)
	return nil
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
	return &peopleHandler{h.app, h.text.WithAttrs(attrs), h.json.WithAttrs(attrs), append(slices.Clip(h.attrs), attrs...)}
}

// WithGroup implements [slog.Handler]; people are not told of groups.
func (h *peopleHandler) WithGroup(name string) slog.Handler {
	return &peopleHandler{h.app, h.text.WithGroup(name), h.json.WithGroup(name), h.attrs}
}
