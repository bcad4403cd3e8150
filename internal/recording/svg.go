package recording

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"
)

// Measures of the picture, in pixels. The font has no name of its own: any
// monospaced one is 0.6 times as wide as it is high, or nearly.
const (
	fontSize   = 13
	lineHeight = 18
	charWidth  = 7.83
	margin     = 14
	// rest is how long the end is shown before it begins again.
	rest = 6 * time.Second
)

// SVG draws the cast: lines rise from the bottom of a window as they came, again
// and again. For readers who want no movement, and where pictures do not move,
// the beginning or the end is shown.
func (c Cast) SVG() string {
	lines, times := c.lines()
	total := rest
	if len(times) > 0 {
		total += times[len(times)-1]
	}
	width, height := float64(c.Width)*charWidth+2*margin, c.Height*lineHeight+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n", escape(c.Title))
	fmt.Fprintf(&b, "  text { font: %dpx ui-monospace, Menlo, Consolas, monospace; fill: #1f2328; white-space: pre; }\n", fontSize)
	b.WriteString("  .box { fill: #f6f8fa; stroke: #d0d7de; }\n  .c { font-weight: bold; }\n  .t { fill: #0550ae; font-weight: bold; }\n")
	b.WriteString("  @media (prefers-color-scheme: dark) { text { fill: #e6edf3; } .t { fill: #79c0ff; } .box { fill: #0d1117; stroke: #30363d; } }\n")
	fmt.Fprintf(&b, "  #lines { transform: translateY(%dpx); animation: rise %.2fs step-end infinite; }\n", top(c.Height, len(lines)), total.Seconds())
	b.WriteString("  @media (prefers-reduced-motion: reduce) { #lines { animation: none; } }\n  @keyframes rise {\n")
	for i, at := range times {
		fmt.Fprintf(&b, "    %.3f%% { transform: translateY(%dpx); }\n", 100*at.Seconds()/total.Seconds(), top(c.Height, i+1))
	}
	fmt.Fprintf(&b, "    100%% { transform: translateY(%dpx); }\n  }\n</style>\n", top(c.Height, len(lines)))
	fmt.Fprintf(&b, `<defs><clipPath id="window"><rect x="0" y="%d" width="%.0f" height="%d"/></clipPath></defs>`+"\n", margin, width, c.Height*lineHeight)
	fmt.Fprintf(&b, `<rect class="box" x=".5" y=".5" width="%.0f" height="%d" rx="8"/>`+"\n", width-1, height-1)
	b.WriteString(`<g clip-path="url(#window)"><g id="lines">` + "\n")
	classes := map[kind]string{command: ` class="c"`, title: ` class="t"`}
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(&b, `<text x="%d" y="%d"%s xml:space="preserve">%s</text>`+"\n", margin, margin+(i+1)*lineHeight-5, classes[kindOf(line)], escape(line))
		}
	}
	b.WriteString("</g></g>\n</svg>\n")
	return b.String()
}

// top is how far the lines are moved so that the last of the first n is at the
// bottom of the window, or near the top while they are few.
func top(height, n int) int { return min(0, height-n) * lineHeight }

// lines cuts the text into lines that fit, and says when each came.
func (c Cast) lines() (lines []string, times []time.Duration) {
	for _, e := range c.Events {
		for line := range strings.Lines(e.Text) {
			line = strings.TrimRight(line, "\r\n")
			if runes := []rune(line); len(runes) > c.Width {
				line = string(runes[:c.Width-1]) + "…"
			}
			lines, times = append(lines, line), append(times, e.At)
		}
	}
	return lines, times
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a builder takes everything
	return b.String()
}
