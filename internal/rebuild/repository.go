package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// repository is what is known of the repository that a checkout belongs to. Its
// files are read as data: git is not started in it, since its configuration, its
// hooks and its attributes came with the checkout.
type repository struct {
	// top is the folder that the checkout is in.
	top string
	// commit is checked out, "" if there is no repository, or none can be told.
	commit string
	// objects is the folder of its objects, shallow the file that names the commits
	// without parents.
	objects, shallow string
	// excluded are patterns of files that are not told of as new.
	excluded string
	// tags are lines of packed-refs.
	tags []string
}

// smallFile bounds what is read of a repository's own files, in bytes.
const smallFile = 1 << 20

// findRepository looks for the repository of a folder, in it and above it, as git
// and the go command do.
func findRepository(dir string) repository {
	for top := dir; ; top = filepath.Dir(top) {
		if r, ok := readRepository(top); ok {
			return r
		}
		if top == filepath.Dir(top) {
			return repository{top: dir}
		}
	}
}

// readRepository reads the repository of a checkout. Where the folder of git is
// elsewhere, as for a further work tree, a file names it.
func readRepository(top string) (repository, bool) {
	own := filepath.Join(top, ".git")
	info, err := os.Stat(own)
	if err != nil {
		return repository{}, false
	}
	if !info.IsDir() {
		named, ok := strings.CutPrefix(readSmall(own), "gitdir: ")
		if !ok {
			return repository{}, false
		}
		own = beside(top, named)
	}
	common := own
	if named := readSmall(filepath.Join(own, "commondir")); named != "" {
		common = beside(own, named)
	}
	r := repository{top: top, objects: filepath.Join(common, "objects"), shallow: readSmall(filepath.Join(common, "shallow"))}
	r.excluded = readSmall(filepath.Join(common, "info", "exclude"))
	r.commit = resolveHead(own, common)
	r.tags = readTags(common)
	return r, true
}

func beside(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// readSmall is the content of a regular file, without space around it, "" if there
// is none.
func readSmall(path string) string {
	info, err := os.Stat(path) //nolint:gosec // the user's own repository, of which git says where it is
	if err != nil || !info.Mode().IsRegular() || info.Size() > smallFile {
		return ""
	}
	content, err := os.ReadFile(path) //nolint:gosec // as above
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// refName is a name that is no path to somewhere else.
var refName = regexp.MustCompile(`^refs/[A-Za-z0-9_][A-Za-z0-9_.+@-]*(/[A-Za-z0-9_][A-Za-z0-9_.+@-]*)*$`)

// resolveHead is the commit that HEAD names, itself or by way of a branch.
func resolveHead(own, common string) string {
	head := readSmall(filepath.Join(own, "HEAD"))
	if revision.MatchString(head) {
		return head
	}
	ref, ok := strings.CutPrefix(head, "ref: ")
	if !ok || !refName.MatchString(ref) {
		return ""
	}
	if commit := readSmall(filepath.Join(common, filepath.FromSlash(ref))); revision.MatchString(commit) {
		return commit
	}
	for line := range strings.Lines(readSmall(filepath.Join(common, "packed-refs"))) {
		commit, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == ref && revision.MatchString(commit) {
			return commit
		}
	}
	return ""
}

// readTags gives the tags, which a build by a command may describe the commit by.
func readTags(common string) []string {
	tags := map[string]string{}
	add := func(name, object string) {
		if strings.HasPrefix(name, "refs/tags/") && refName.MatchString(name) && revision.MatchString(object) {
			tags[name] = object
		}
	}
	for line := range strings.Lines(readSmall(filepath.Join(common, "packed-refs"))) {
		object, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		add(name, object)
	}
	loose := filepath.Join(common, "refs", "tags")
	_ = filepath.WalkDir(loose, func(path string, d fs.DirEntry, err error) error {
		if err != nil || len(tags) > maxFiles {
			return fs.SkipAll // what cannot be read is not described by
		}
		if name, relErr := filepath.Rel(common, path); relErr == nil && d.Type().IsRegular() {
			add(filepath.ToSlash(name), readSmall(path))
		}
		return nil
	})
	var lines []string
	for name, object := range tags {
		lines = append(lines, object+" "+name+"\n")
	}
	return lines
}

// restore makes a repository of ours in a copy of the checkout, with the same
// commit checked out: the go command writes it into executables. It reads the
// objects of the other one, which git compares with their names, and nothing else
// of it.
func (r repository) restore(ctx context.Context, dir string) error {
	if strings.ContainsAny(r.objects, "\n\"") {
		return fmt.Errorf("%w: the name of its repository has a line break or a quote in it", ErrCheckout)
	}
	format := "sha1"
	if len(r.commit) == 64 {
		format = "sha256"
	}
	if _, err := ownGit(ctx, dir, "init", "--quiet", "--template=", "--object-format="+format); err != nil {
		return err
	}
	own := filepath.Join(dir, ".git")
	files := map[string]string{
		"HEAD": r.commit + "\n", "objects/info/alternates": r.objects + "\n", "packed-refs": strings.Join(r.tags, ""),
		"info/exclude": r.excluded + "\n" + usersExcludes(ctx, dir),
	}
	if r.shallow != "" {
		files["shallow"] = r.shallow + "\n"
	}
	for name, content := range files {
		path := filepath.Join(own, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as git makes its folders
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	_, err := ownGit(ctx, dir, "read-tree", "HEAD")
	return err
}

// usersExcludes are the patterns of files that the user's own configuration leaves
// out, such as those of editors.
func usersExcludes(ctx context.Context, dir string) string {
	cmd := exec.CommandContext(ctx, "git", "config", "--global", "--type=path", "--get", "core.excludesFile")
	cmd.Env, cmd.Dir = ofUser(), dir
	out, err := cmd.Output()
	name := strings.TrimSpace(string(out))
	if err != nil || name == "" {
		// Where git looks on every system.
		name = filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(os.Getenv("HOME"), ".config")), "git", "ignore")
	}
	return readSmall(name) + "\n"
}

// different names the files of a checkout that differ from its commit, or are not
// in it: those may be built, too.
func different(ctx context.Context, dir string) ([]string, error) {
	out, err := ownGit(ctx, dir, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(out) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names, nil
}

// gitTimeout bounds what git does without a network.
const gitTimeout = 5 * time.Minute

// ownGit runs git in a repository of ours: without a network, and without the
// user's configuration, which may name filters for attributes of the source.
func ownGit(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	// Files that were checked out for Windows are those of the commit.
	args = append([]string{"-C", dir, "-c", "core.autocrlf=input", "-c", "core.safecrlf=false"}, args...)
	cmd := exec.CommandContext(ctx, "git", args...) // #nosec G204 -- commits and folders of ours
	cmd.Env = append(environment(), alone()...)
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return text, fmt.Errorf("git: %w: %s", exit, text)
	}
	return text, err
}

// alone keeps git, the go command's too, from reading any configuration but that of
// the repository, from running hooks, and from the network.
// https://git-scm.com/docs/git#_environment_variables
func alone() []string {
	return []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_ALLOW_PROTOCOL=", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=" + os.DevNull,
		"GIT_CONFIG_KEY_1=core.fsmonitor", "GIT_CONFIG_VALUE_1=false",
	}
}
