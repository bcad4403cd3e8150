package cli

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// Progress shows how far a transfer is. It is an [io.Writer], so bytes can be
// counted with [io.TeeReader] or [io.MultiWriter]; it never fails.
type Progress struct {
	bar *progressbar.ProgressBar
}

// progressInterval is how often a bar is drawn again.
const progressInterval = 100 * time.Millisecond

// Progress starts a progress bar of total bytes on Err; a total below zero is
// not known. It shows nothing when Err is no terminal, with --quiet and with
// --output json. Close it.
func (a *App) Progress(label string, total int64) *Progress {
	if a.Quiet || a.Output == JSON || !a.Interactive() {
		return &Progress{}
	}
	return &Progress{bar: newBar(a.screen, plaintext.Line(label), total)}
}

func newBar(w io.Writer, label string, total int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(label),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(progressInterval),
		progressbar.OptionClearOnFinish(),
	)
}

// Add moves the bar on by n bytes. It may be called from several goroutines.
func (p *Progress) Add(n int64) {
	if p.bar != nil {
		_ = p.bar.Add64(n)
	}
}

// Set moves the bar to done of total bytes.
func (p *Progress) Set(done, total int64) {
	if p.bar == nil {
		return
	}
	if p.bar.GetMax64() != total {
		p.bar.ChangeMax64(total)
	}
	_ = p.bar.Set64(done)
}

// Describe changes what the bar says.
func (p *Progress) Describe(label string) {
	if p.bar != nil {
		p.bar.Describe(plaintext.Line(label))
	}
}

// Write moves the bar on by the length of b.
func (p *Progress) Write(b []byte) (int, error) {
	p.Add(int64(len(b)))
	return len(b), nil
}

// Close takes the bar off the screen.
func (p *Progress) Close() error {
	if p.bar == nil {
		return nil
	}
	return p.bar.Clear()
}
