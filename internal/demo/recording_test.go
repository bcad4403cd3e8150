package demo

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/recording"
)

// chapter is a step of a story without what is another each time.
type chapter struct {
	Title    string
	Commands []string
	// Lines are sorted, each once; none for steps in which things happen at the
	// same time.
	Lines []string
}

// chapters reads a story. Digests, sizes, times, counts, platforms and names of
// servers are left out of it, since they differ between two days or machines.
func chapters(text string) []chapter {
	masks := []struct {
		pattern *regexp.Regexp
		with    string
	}{
		{regexp.MustCompile(`sha256:[0-9a-f]+|\b[0-9a-f]{12,}\b`), "DIGEST"},
		{regexp.MustCompile(`\b(linux|windows|darwin)/[0-9a-z/]+|\ball [0-9]+ platforms`), "PLATFORM"},
		{regexp.MustCompile(`PLATFORM(, PLATFORM)+`), "PLATFORM"},
		{regexp.MustCompile(`\bindex(, PLATFORM)?\b|PLATFORM\b`), "SUBJECT"},
		{regexp.MustCompile(`plugin\.exe`), "plugin"},
		{regexp.MustCompile(`[0-9.]+ ?[kKMG]?i?B\b`), "SIZE"},
		{regexp.MustCompile(`([0-9.]+(ms|µs|m|s))+\b`), "TIME"},
		{regexp.MustCompile(`go[0-9.]+[0-9]`), "GO"},
		{regexp.MustCompile(`[0-9]+`), "0"},
		{regexp.MustCompile(`\s+`), " "},
	}
	heading := regexp.MustCompile(`^[0-9]+\. `)
	atOnce := []string{"0. Run jobs on servers that are made for them", "0. Scale to zero"}
	var found []chapter
	for line := range strings.Lines(text) {
		isHeading := heading.MatchString(line)
		for _, mask := range masks {
			line = mask.pattern.ReplaceAllString(line, mask.with)
		}
		line = strings.TrimSpace(line)
		switch {
		case isHeading || line == "What happened:":
			found = append(found, chapter{Title: line})
		case line == "" || len(found) == 0:
		case strings.HasPrefix(line, "$ "):
			found[len(found)-1].Commands = append(found[len(found)-1].Commands, line)
		case !slices.Contains(atOnce, found[len(found)-1].Title):
			found[len(found)-1].Lines = append(found[len(found)-1].Lines, line)
		}
	}
	for i := range found {
		slices.Sort(found[i].Lines)
		found[i].Lines = slices.Compact(found[i].Lines)
	}
	return found
}

// checkRecording compares the story with its recording in the documentation.
func checkRecording(t *testing.T, story string) {
	t.Helper()
	const base = "../../docs/recordings/demo"
	file, err := os.Open(base + ".cast")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	cast, err := recording.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(chapters(story), chapters(cast.Text())); diff != "" {
		t.Errorf("the recording is not what the demo shows now, run make pictures (-demo +recording):\n%s", diff)
	}
	svg, err := os.ReadFile(filepath.FromSlash(base + ".svg"))
	if err != nil {
		t.Fatal(err)
	}
	if string(svg) != cast.SVG() {
		t.Error("the picture is not drawn from the recording, run make pictures")
	}
}
