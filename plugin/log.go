package plugin

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// slogger lets the parts of the plugin, which know only log/slog, write to the
// logger that fleeting gives.
func slogger(logger hclog.Logger) *slog.Logger { return slog.New(hclogHandler{logger: logger}) }

// hclogHandler passes records of log/slog on.
type hclogHandler struct {
	logger hclog.Logger
	attrs  []any
	group  string
}

// Enabled implements slog.Handler.
func (h hclogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return hclogLevel(level) >= h.logger.GetLevel()
}

// Handle implements slog.Handler.
func (h hclogHandler) Handle(_ context.Context, record slog.Record) error {
	args := append([]any{}, h.attrs...)
	record.Attrs(func(a slog.Attr) bool {
		args = append(args, h.group+a.Key, a.Value.Resolve().Any())
		return true
	})
	h.logger.Log(hclogLevel(record.Level), record.Message, args...)
	return nil
}

// WithAttrs implements slog.Handler.
func (h hclogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	args := append([]any{}, h.attrs...)
	for _, a := range attrs {
		args = append(args, h.group+a.Key, a.Value.Resolve().Any())
	}
	h.attrs = args
	return h
}

// WithGroup implements slog.Handler.
func (h hclogHandler) WithGroup(name string) slog.Handler {
	h.group += name + "."
	return h
}

func hclogLevel(level slog.Level) hclog.Level {
	switch {
	case level >= slog.LevelError:
		return hclog.Error
	case level >= slog.LevelWarn:
		return hclog.Warn
	case level >= slog.LevelInfo:
		return hclog.Info
	default:
		return hclog.Debug
	}
}
