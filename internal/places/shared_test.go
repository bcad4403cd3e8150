package places

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSharedFolders checks that a folder that other users may write is left out, at any
// level beneath ProgramData, and that the user's own places stay.
func TestSharedFolders(t *testing.T) {
	t.Parallel()
	open := errors.New("others may write it")
	for _, dir := range []string{`C:\ProgramData\docker`, `C:\ProgramData\docker\certs.d`} {
		p := On("windows", func(name string) (string, bool) {
			return map[string]string{"ProgramData": `C:\ProgramData`, "USERPROFILE": `C:\me`}[name], true
		})
		p.guarded = func(asked string) error {
			if asked == dir {
				return open
			}
			return nil
		}
		got, err := p.Certificates()
		want := []string{`C:\me\.config\containers\certs.d`, `C:\me\.docker\certs.d`}
		if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, open) {
			t.Errorf("%s: %v (-want +got):\n%s", dir, err, diff)
		}
	}
}
