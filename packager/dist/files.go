package dist

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// collect returns the files of a platform's folder: the executable and its
// companions. What the runner's installer would drop, or would install as
// something else than what was published, is refused.
func collect(dir string, p artifact.Platform) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, &InputError{Path: dir, Problem: "cannot be read", Err: errors.Unwrap(err)}
	}
	var files []File
	var problems []error
	seen := map[string]string{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		f, err := regular(path, e.Name())
		if problem := artifact.FileNameProblem(e.Name()); err == nil && problem != "" {
			err = &InputError{Path: path, Problem: "has a name that a plugin's file cannot have: " + problem, Remedy: "rename it"}
		}
		problems = append(problems, err)
		files = append(files, f)
		folded := artifact.FoldFileName(e.Name())
		if other, ok := seen[folded]; ok {
			problems = append(problems, &InputError{
				Path: path, Problem: "differs from " + other + " only in upper and lower case, or in how accents are written",
				Remedy: "rename one: file systems of Windows and macOS cannot hold both",
			})
		}
		seen[folded] = e.Name()
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(files, func(f File) bool { return f.name == p.Executable() })
	if i < 0 {
		return nil, missing(dir, p, files)
	}
	if err := needExecutable(files[i], p); err != nil {
		return nil, err
	}
	files[i].executable = true
	return files, nil
}

// modes says whether files on this system have modes that tell what is executable.
const modes = runtime.GOOS != "windows"

// settleModes decides which companions are executable, so that the same files make
// the same layer on every system. Without modes nothing tells those for a system
// that has them.
func (in *Input) settleModes(executables []string, modes bool) error {
	var problems []error
	for i := range in.files {
		f := &in.files[i]
		switch {
		case f.name == in.platform.Executable():
		case in.platform.OS() == "windows":
			f.executable = slices.Contains(windowsExecutables(), strings.ToLower(filepath.Ext(f.name)))
		case executables != nil:
			f.executable = slices.Contains(executables, f.name)
		case !modes:
			problems = append(problems, &InputError{
				Path: f.path, Problem: "may be executable or not: this system does not tell for " + in.platform.String(),
				Remedy: "name the companions that are executable with --executable NAME, or give --executable '' if none is",
			})
		}
	}
	return errors.Join(problems...)
}

// windowsExecutables are the endings of files whose content Windows executes.
func windowsExecutables() []string { return []string{".exe", ".dll", ".com", ".bat", ".cmd"} }

// single returns one executable, under the name that it has in the artifact.
func single(path string, p artifact.Platform) ([]File, error) {
	f, err := regular(path, p.Executable())
	if err != nil {
		return nil, err
	}
	if err := needExecutable(f, p); err != nil {
		return nil, err
	}
	f.executable = true
	return []File{f}, nil
}

// regular checks one file.
func regular(path, name string) (File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return File{}, &InputError{Path: path, Problem: "cannot be read", Err: errors.Unwrap(err)}
	}
	mode := info.Mode()
	refuse := func(problem, remedy string) (File, error) {
		return File{}, &InputError{Path: path, Problem: problem, Remedy: remedy}
	}
	switch {
	case mode.IsDir():
		return refuse("is a folder, and the runner's installer takes no folders below the plugin's",
			"put companion files beside the executable, or embed them")
	case mode&fs.ModeSymlink != 0:
		return refuse("is a symbolic link, which the runner's installer drops", "copy the file that it points to")
	case !mode.IsRegular():
		return refuse("is not a regular file ("+mode.Type().String()+")", "remove it")
	case mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0:
		return refuse("has a setuid, setgid or sticky bit ("+mode.String()+")", "chmod u-s,g-s,-t "+path)
	}
	return File{
		name: name, path: path, size: info.Size(),
		executable: mode.Perm()&0o111 != 0, found: info,
	}, nil
}

func needExecutable(f File, p artifact.Platform) error {
	// Windows has no executable bit, neither on the files for it nor for those
	// who build there.
	if f.executable || p.OS() == "windows" || !modes {
		return nil
	}
	return &InputError{Path: f.path, Problem: "is not executable", Remedy: "chmod +x " + f.path}
}

func missing(dir string, p artifact.Platform, files []File) error {
	e := &InputError{Path: dir, Problem: "has no file " + p.Executable()}
	var names []string
	for _, f := range files {
		names = append(names, f.name)
	}
	switch len(names) {
	case 0:
		e.Remedy = "build the executable to " + filepath.Join(dir, p.Executable())
	case 1:
		e.Remedy = "rename " + filepath.Join(dir, names[0]) + " to " + p.Executable()
	default:
		e.Remedy = "rename the executable to " + p.Executable() + "; there are " + strings.Join(names, ", ")
	}
	return e
}
