//go:build linux

package recording_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/recording"
)

func TestRecord(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `test -t 1 && stty size && echo "$ a <command>" >&2`)
	cast, err := recording.Record(t.Context(), cmd, recording.Cast{Width: 40, Height: 5, Title: "A & B"})
	if err != nil {
		t.Fatalf("%v: %s", err, cast.Text())
	}
	if got, want := cast.Text(), "5 40\n$ a <command>\n"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
	_, err = recording.Record(t.Context(), exec.CommandContext(t.Context(), "sh", "-c", "exit 3"), recording.Cast{Width: 1, Height: 1})
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 {
		t.Errorf("got %v, want exit code 3", err)
	}
}

func TestCast(t *testing.T) {
	t.Parallel()
	cast := recording.Cast{Width: 12, Height: 2, Title: "A & B", Events: []recording.Event{
		{At: time.Hour, Text: "1. Step\r\n   $ it"}, {At: 2 * time.Hour, Text: " <b>\r\nsomething longer than the window\r\n"},
	}}
	paced := cast.Paced()
	if got, want := paced.Text(), cast.Text(); got != want {
		t.Errorf("paced %q, was %q", got, want)
	}
	if end := paced.Events[len(paced.Events)-1].At; end > 10*time.Second || len(paced.Events) != 3 {
		t.Errorf("paced: %d events, %s", len(paced.Events), end)
	}
	back, err := recording.Decode(strings.NewReader(paced.String()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(paced, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	svg := paced.SVG()
	for _, want := range []string{"<title>A &amp; B</title>", "$ it &lt;b&gt;</text>", ">something l…</text>", "prefers-color-scheme: dark", "prefers-reduced-motion"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture has no %q:\n%s", want, svg)
		}
	}
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"", "{}", `{"version": 1, "width": 80, "height": 24}`, "{\"version\": 2, \"width\": 80, \"height\": 24}\n[1]\nx"} {
		if _, err := recording.Decode(strings.NewReader(content)); err == nil {
			t.Errorf("%q: no error", content)
		}
	}
}
