package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

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
// commit out. The errors are [ErrOrigin], [ErrFetch], [ErrNoCommit] and that git
// is not there, [exec.ErrNotFound]. Only the address's own protocol is spoken, so
// that https is not redirected to http, and no hook and no submodule of the
// repository is used. git compares every object with the commit's name, so what
// lies there is what the name stands for.
func (o Origin) Clone(ctx context.Context, dir string) error {
	if err := o.Check(); err != nil {
		return err
	}
	scheme, _, _ := strings.Cut(o.Repository, "://")
	for _, step := range []struct {
		failure error
		args    []string
	}{
		{ErrFetch, []string{"clone", "--quiet", "--no-checkout", "--template=", "--", o.Repository, dir}},
		{ErrNoCommit, []string{"-C", dir, "cat-file", "-e", o.Revision + "^{commit}"}},
		{nil, []string{"-C", dir, "-c", "advice.detachedHead=false", "-c", "core.autocrlf=false", "-c", "submodule.recurse=false", "checkout", "--quiet", "--detach", o.Revision}},
	} {
		out, err := gitOver(ctx, strings.ToLower(scheme), step.args...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			err = fmt.Errorf("%s at %s: %w\n%s", o.Repository, o.Revision, err, out)
		}
		if err != nil && step.failure != nil && !errors.Is(err, exec.ErrNotFound) {
			err = fmt.Errorf("%w: %w", step.failure, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Head gives the commit that is checked out in dir, "" if dir is none, and the
// files that differ from it or that git does not know: those may be built, too.
// The error says that the files cannot be told.
func Head(ctx context.Context, dir string) (commit string, different []string, err error) {
	commit, err = git(ctx, "-C", dir, "rev-parse", "HEAD")
	if err != nil {
		return "", nil, nil //nolint:nilerr // no checkout is an answer
	}
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "status", "--porcelain") // #nosec G204 -- the folder that the user named
	cmd.Env = append(environment(), harmless(ctx, dir)...)
	out, err := cmd.Output()
	if err != nil {
		return commit, nil, fmt.Errorf("git status: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			different = append(different, strings.TrimSpace(name))
		}
	}
	return commit, different, nil
}

// git runs git without a network.
func git(ctx context.Context, args ...string) (string, error) { return gitOver(ctx, "", args...) }

// gitOver runs git, which speaks no other protocol, and without hooks: a user
// whose core.hooksPath is relative would run those that lie in the source.
// https://git-scm.com/docs/git#Documentation/git.txt-GITALLOWPROTOCOL
func gitOver(ctx context.Context, protocol string, args ...string) (string, error) {
	args = append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}, args...)
	cmd := exec.CommandContext(ctx, "git", args...) // #nosec G204 -- addresses and commits are checked above
	cmd.Env = append(environment(), "GIT_ALLOW_PROTOCOL="+protocol, "GIT_TERMINAL_PROMPT=0", "GIT_LFS_SKIP_SMUDGE=1")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// environment is that of this process without what names another repository than
// the one in the folder, as hooks and "git rebase --exec" have it.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{
			"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
			"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE",
		}, name)
	})
}

// harmless gives the variables that keep git in dir, the go command's too, from
// running what the .git/config there names: it came with the checkout. What the
// user configured stays. https://git-scm.com/docs/git-config#ENVIRONMENT
func harmless(ctx context.Context, dir string) []string {
	settings := [][2]string{{"core.hooksPath", os.DevNull}, {"core.fsmonitor", "false"}}
	listed, err := git(ctx, "-C", dir, "config", "--list", "--show-scope", "--name-only", "-z")
	if err != nil {
		listed = "" // no repository, so nothing is read from it
	}
	fields := strings.Split(listed, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		scope, name := fields[i], fields[i+1]
		if scope != "local" && scope != "worktree" || !strings.HasPrefix(name, "filter.") {
			continue
		}
		switch name[strings.LastIndexByte(name, '.'):] {
		case ".clean", ".smudge", ".process":
			settings = append(settings, [2]string{name, ""})
		case ".required":
			settings = append(settings, [2]string{name, "false"})
		}
	}
	env := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(settings))}
	for i, setting := range settings {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, setting[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, setting[1]))
	}
	return env
}
