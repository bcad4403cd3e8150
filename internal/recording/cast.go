package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Event is text that appeared.
type Event struct {
	// At is the time since the start.
	At time.Duration
	// Text as the terminal got it.
	Text string
}

// Cast is a recording.
type Cast struct {
	// Width and Height of the terminal, in characters.
	Width, Height int
	// Title is what is shown.
	Title string
	// Events in the order of time.
	Events []Event
}

// header is the first line of a file.
type header struct {
	Version int    `json:"version"`
	Width   int    `json:"width"`
	Height  int    `json:"height"`
	Title   string `json:"title,omitempty"`
}

// Encode writes the cast.
func (c Cast) Encode(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(header{2, c.Width, c.Height, c.Title}); err != nil {
		return err
	}
	for _, e := range c.Events {
		if err := encoder.Encode([]any{float64(e.At.Milliseconds()) / 1000, "o", e.Text}); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads a cast. Events that are not output are passed over.
func Decode(r io.Reader) (Cast, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return Cast{}, errors.Join(errors.New("an empty recording"), lines.Err())
	}
	var h header
	if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
		return Cast{}, fmt.Errorf("header: %w", err)
	}
	if h.Version != 2 || h.Width <= 0 || h.Height <= 0 {
		return Cast{}, fmt.Errorf("header: version %d, %d by %d characters", h.Version, h.Width, h.Height)
	}
	c := Cast{Width: h.Width, Height: h.Height, Title: h.Title}
	for lines.Scan() {
		var at float64
		var kind, text string
		if err := json.Unmarshal(lines.Bytes(), &[]any{&at, &kind, &text}); err != nil {
			return Cast{}, fmt.Errorf("event %d: %w", len(c.Events)+1, err)
		}
		if kind == "o" {
			c.Events = append(c.Events, Event{time.Duration(math.Round(at*1000)) * time.Millisecond, text})
		}
	}
	return c, lines.Err()
}

// Text is everything that was shown, with plain line ends.
func (c Cast) Text() string {
	var b strings.Builder
	for _, e := range c.Events {
		b.WriteString(e.Text)
	}
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

// Paced gives the cast with one event for each line, and times that do not
// depend on the machine: a line follows the one before after the time that it
// takes to be read, one that begins a step or a command after a pause.
func (c Cast) Paced() Cast {
	const line, pause = 60 * time.Millisecond, 900 * time.Millisecond
	paced := Cast{Width: c.Width, Height: c.Height, Title: c.Title}
	var at time.Duration
	for text := range strings.Lines(c.Text()) {
		at += line
		if kindOf(text) != plain {
			at += pause
		}
		paced.Events = append(paced.Events, Event{at, strings.TrimRight(text, "\n") + "\r\n"})
	}
	return paced
}

// kind is what a line is, for pace and colour.
type kind int

const (
	plain kind = iota
	command
	title
)

func kindOf(line string) kind {
	switch trimmed := strings.TrimLeft(line, " "); {
	case strings.HasPrefix(trimmed, "$ "):
		return command
	case line != "" && line[0] >= '0' && line[0] <= '9' && strings.Contains(line, ". "):
		return title
	}
	return plain
}

// String is the cast as a file.
func (c Cast) String() string {
	var b bytes.Buffer
	if err := c.Encode(&b); err != nil {
		return err.Error() // a buffer takes everything
	}
	return b.String()
}
