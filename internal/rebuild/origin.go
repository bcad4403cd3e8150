package rebuild

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/plaintext"
	"github.com/radome-io/fleeting-plugin-openstack/internal/secureurl"
)

// ErrOrigin is an origin that cannot be used: none is named, or it is one that
// is not fetched.
var ErrOrigin = errors.New("no usable source")

// ErrFetch is a repository that cannot be fetched now, ErrNoCommit one that does
// not have the commit.
var (
	ErrFetch    = errors.New("the source cannot be fetched")
	ErrNoCommit = errors.New("the repository does not have the commit")
)

// ErrCheckout is a checkout that was named and is not there.
var ErrCheckout = errors.New("no checkout")

// Origin says where the source of something published is.
type Origin struct {
	// Repository is the address of a git repository, https://….
	Repository string `json:"repository,omitempty"`
	// Ref is the git ref that was built, such as refs/tags/v1.2.3.
	Ref string `json:"ref,omitempty"`
	// Revision is the commit, in full.
	Revision string `json:"revision,omitempty"`
	// LDFlags are the -ldflags of the go command, where the publisher says them.
	LDFlags string `json:"ldflags,omitempty"`
}

// ReadProvenance reads the predicate of a SLSA provenance v1: the first
// resolved dependency with a git commit, and the linker flags that our own
// provenance carries. https://slsa.dev/spec/v1.0/provenance
func ReadProvenance(predicate []byte) (Origin, error) {
	var p struct {
		BuildDefinition struct {
			ResolvedDependencies []struct {
				URI    string            `json:"uri"`
				Digest map[string]string `json:"digest"`
			} `json:"resolvedDependencies"`
			InternalParameters struct {
				Go struct {
					LDFlags string `json:"ldflags"`
				} `json:"go"`
			} `json:"internalParameters"`
		} `json:"buildDefinition"`
	}
	if err := json.Unmarshal(predicate, &p); err != nil {
		return Origin{}, fmt.Errorf("%w: the provenance cannot be read: %w", ErrOrigin, err)
	}
	origin := Origin{LDFlags: p.BuildDefinition.InternalParameters.Go.LDFlags}
	for _, dependency := range p.BuildDefinition.ResolvedDependencies {
		if commit := dependency.Digest["gitCommit"]; commit != "" {
			origin.Revision = commit
			origin.Repository, origin.Ref = splitRef(strings.TrimPrefix(dependency.URI, "git+"))
			break
		}
	}
	return origin, nil
}

// splitRef takes "@ref" off an address; a user name's @ comes before the host.
func splitRef(address string) (repository, ref string) {
	if at := strings.LastIndexByte(address, '@'); at > strings.LastIndex(address, "://")+2 && strings.Contains(address[:at], "/") &&
		strings.HasPrefix(address[at+1:], "refs/") {
		return address[:at], address[at+1:]
	}
	return address, ""
}

// revision is a full commit name, of SHA-1 or SHA-256; nothing else pins one.
var revision = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Check refuses an origin that Clone would not fetch, with [ErrOrigin]: one that
// does not name repository and commit, or what git would take for something else than an address of a
// web server: its other transports run programs or read local files.
func (o Origin) Check() error {
	if o.Repository == "" || o.Revision == "" {
		return fmt.Errorf("%w: repository and commit are not named", ErrOrigin)
	}
	if !revision.MatchString(o.Revision) {
		return fmt.Errorf("%w: %q is not the full name of a commit", ErrOrigin, o.Revision)
	}
	if err := secureurl.Check(o.Repository); err != nil {
		return fmt.Errorf("%w: %w", ErrOrigin, err)
	}
	return nil
}

// Clone fetches the source into dir, which must not be there, and checks the
// commit out. The errors are [ErrOrigin], [ErrFetch], [ErrNoCommit], [ErrTooLarge]
// and that git is not there, [exec.ErrNotFound]. Only the address's own protocol is
// spoken, so that https is not redirected to http. The user's configuration counts
// for fetching, which looks at no file of the source, and not for checking out: no
// hook, no filter and no submodule of the repository is used. git compares every
// object with the commit's name, so what lies there is what the name stands for.
func (o Origin) Clone(ctx context.Context, dir string) (Source, error) {
	if err := o.Check(); err != nil {
		return Source{}, err
	}
	if err := o.fetch(ctx, dir); err != nil {
		return Source{}, err
	}
	if _, err := ownGit(ctx, dir, "cat-file", "-e", o.Revision+"^{commit}"); err != nil {
		return Source{}, errors.Join(ctx.Err(), fmt.Errorf("%w: %s at %s: %w", ErrNoCommit, o.Repository, o.Revision, err))
	}
	// A few bytes of history can become any number of them here.
	bounded, stop := whileSmall(ctx, dir)
	defer stop()
	if _, err := ownGit(bounded, dir, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", o.Revision); err != nil {
		return Source{}, cmp.Or(ctx.Err(), fmt.Errorf("checking out %s: %w", o.Revision, cmp.Or(context.Cause(bounded), err)))
	}
	leftOut, err := confineLinks(dir)
	return Source{Dir: dir, Revision: o.Revision, LeftOut: leftOut, commit: o.Revision, top: dir}, err
}

// fetch clones the repository without checking anything out.
func (o Origin) fetch(ctx context.Context, dir string) error {
	scheme, _, _ := strings.Cut(o.Repository, "://")
	bounded, stop := whileSmall(ctx, dir)
	defer stop()
	out, err := gitOver(bounded, strings.ToLower(scheme), "clone", "--quiet", "--no-checkout", "--no-recurse-submodules", "--template=", "--", o.Repository, dir)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(bounded), ErrTooLarge):
		return fmt.Errorf("%s: %w", o.Repository, context.Cause(bounded))
	case errors.Is(err, exec.ErrNotFound):
		return err
	case err != nil:
		return fmt.Errorf("%w: %s at %s: %w\n%s", ErrFetch, o.Repository, o.Revision, err, out)
	}
	return nil
}

// whileSmall ends a context when a folder has grown too large, with [ErrTooLarge].
func whileSmall(ctx context.Context, dir string) (bounded context.Context, stop func()) {
	bounded, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if size(dir) > maxClone {
					cancel(fmt.Errorf("%w: a clone of more than %d bytes", ErrTooLarge, int64(maxClone)))
				}
			}
		}
	}()
	return bounded, func() { close(done); cancel(nil) }
}

// size is the sum of the files beneath a folder that is being written.
func size(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// gitOver runs git over a network, with the user's configuration and credentials. It
// speaks no other protocol, gives up a connection that hardly carries anything, and
// runs no hook: a user whose core.hooksPath is relative would run those that lie in
// the source. https://git-scm.com/docs/git#Documentation/git.txt-GITALLOWPROTOCOL
func gitOver(ctx context.Context, protocol string, args ...string) (string, error) {
	args = append([]string{
		"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "http.lowSpeedLimit=1024", "-c", "http.lowSpeedTime=60",
	}, args...)
	cmd := exec.CommandContext(ctx, "git", args...) // #nosec G204 -- addresses and commits are checked above
	cmd.Env = append(ofUser(), "GIT_ALLOW_PROTOCOL="+protocol, "GIT_TERMINAL_PROMPT=0", "GIT_LFS_SKIP_SMUDGE=1")
	out, err := cmd.CombinedOutput()
	return plaintext.Redact(strings.TrimSpace(string(out))), err
}

// ofUser is the environment of this process without what names another repository
// than the one in the folder, as hooks and "git rebase --exec" have it.
func ofUser() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{
			"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
			"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE",
		}, name)
	})
}
