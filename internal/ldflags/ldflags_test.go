package ldflags

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariables(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string][]Variable{
		"":      nil,
		"-s -w": nil,
		"-s -X main.version=1.2.3 --X=main.revision=abc": {{"main.version", "1.2.3"}, {"main.revision", "abc"}},
		`-X 'main.name=two words' "-X=main.x=a=b"`:       {{"main.name", "two words"}, {"main.x", "a=b"}},
		"-X":                     nil,
		"-X main.version":        nil,
		"-linkmode X -X main.a=": {{"main.a", ""}},
	} {
		got, err := Variables(flags)
		if err != nil {
			t.Errorf("%q: %v", flags, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", flags, diff)
		}
	}
	if _, err := Variables("-X 'main.a=b"); !errors.Is(err, ErrQuote) {
		t.Errorf("a quote that does not end: %v", err)
	}
}
