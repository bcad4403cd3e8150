package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
)

// progress is the line on a terminal that shows how far transfers are. Whatever
// else is written takes it off the screen first.
type progress struct {
	mu    sync.Mutex
	parts []part
	// began is when the first part did, drawn when the line was last drawn.
	began, drawn time.Time
	// width of the line that is on the screen, 0 for none.
	width int
}

// part is one of the transfers that go on.
type part struct {
	what, name  string
	done, total int64
}

const (
	// progressAfter is how long transfers go on before they are shown.
	progressAfter = 300 * time.Millisecond
	// progressInterval is how often the line is drawn again.
	progressInterval = 100 * time.Millisecond
)

// Progress shows people on a terminal how far a transfer is: what is done with a
// part, such as "uploading" with "linux/amd64", and how many of its bytes are done.
// One line shows the sum of all parts, until they are all done or something else is
// written. There is none with --quiet and with --output json. It may be called from
// several goroutines.
func (a *App) Progress(what, name string, done, total int64) {
	if a.Quiet || a.Output == JSON || !a.Interactive() {
		return
	}
	p := &a.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	now := a.Now()
	if len(p.parts) == 0 {
		p.began = now
	}
	p.set(part{what, name, done, total})
	if !slices.ContainsFunc(p.parts, func(one part) bool { return one.done < one.total }) {
		p.clear(a.screen)
		p.parts = nil
		return
	}
	if now.Sub(p.began) >= progressAfter && now.Sub(p.drawn) >= progressInterval {
		p.drawn = now
		p.draw(a.screen, p.line(now, a.ErrTerminal.Columns))
	}
}

func (p *progress) set(now part) {
	i := slices.IndexFunc(p.parts, func(one part) bool { return one.what == now.what && one.name == now.name })
	if i < 0 {
		p.parts = append(p.parts, now)
		return
	}
	p.parts[i] = now
}

// line says it in less than so many columns.
func (p *progress) line(now time.Time, columns int) string {
	var whats []string
	var done, total int64
	for _, one := range p.parts {
		done, total = done+one.done, total+one.total
		if !slices.Contains(whats, one.what) {
			whats = append(whats, one.what)
		}
	}
	label := strings.Join(whats, ", ")
	if len(p.parts) == 1 {
		label = plaintext.Line(strings.TrimSpace(label + " " + p.parts[0].name))
	}
	amount := fmt.Sprintf("  %3d%%  %s of %s", int(100*float64(done)/float64(total)), Size(done), Size(total))
	rate := fmt.Sprintf(", %s/s", Size(int64(float64(done)/now.Sub(p.began).Seconds())))
	if columns == 0 {
		return label + amount + rate
	}
	left := columns - 1 - len(amount) - len(rate)
	if left < utf8.RuneCountInString(label) {
		rate, left = "", left+len(rate)
	}
	if runes := []rune(label); left < len(runes) && left > 0 {
		label = string(runes[:left-1]) + "…"
	}
	return label + amount + rate
}

func (p *progress) draw(w io.Writer, line string) {
	width := utf8.RuneCountInString(line)
	_, _ = io.WriteString(w, "\r"+line+strings.Repeat(" ", max(0, p.width-width)))
	p.width = max(width, p.width)
}

func (p *progress) clear(w io.Writer) {
	if p.width > 0 {
		_, _ = io.WriteString(w, "\r"+strings.Repeat(" ", p.width)+"\r")
	}
	p.width, p.drawn = 0, time.Time{}
}

// beside is a stream that may be on the same terminal.
type beside struct {
	app *App
	to  io.Writer
}

// Write takes the progress off the screen, and writes.
func (b beside) Write(text []byte) (int, error) {
	b.app.progress.mu.Lock()
	defer b.app.progress.mu.Unlock()
	b.app.progress.clear(b.app.screen)
	return b.to.Write(text)
}

// endProgress forgets what was shown.
func (a *App) endProgress() {
	a.progress.mu.Lock()
	defer a.progress.mu.Unlock()
	a.progress.clear(a.screen)
	a.progress.parts = nil
}

// Size writes a number of bytes for people.
func Size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
