package untar

import (
	"fmt"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

// Selection says which files of an archive make the plugin.
type Selection struct {
	// dir is the folder whose content is taken, without slashes at the ends; empty for one file only.
	dir string
	// file is the path of the executable in the archive.
	file string
	// as is the name that the executable gets.
	as string
	// strict refuses files elsewhere in the archive, instead of passing over them.
	strict bool
}

// Plugin selects everything beneath plugin/ (or Files/plugin/, as in archives
// for Windows), and refuses an archive with files elsewhere. executable is
// plugin or plugin.exe.
func Plugin(executable string) Selection {
	return Selection{dir: "plugin", file: "plugin/" + executable, as: executable, strict: true}
}

// Folder selects everything beneath the folder of path, an absolute or relative
// path in an image, and stores the file at path as executable. What else the
// archive has is passed over.
func Folder(path, executable string) Selection {
	path = strings.Trim(path, "/")
	dir, _, _ := cutLast(path)
	return Selection{dir: dir, file: path, as: executable}
}

// Single selects the file at path only, and stores it as executable.
func Single(path, executable string) Selection {
	return Selection{file: strings.Trim(path, "/"), as: executable}
}

// String names the executable that is looked for.
func (s Selection) String() string { return s.file }

// action is what to do with an entry.
type action int

const (
	take action = iota
	pass
	refuse
)

// target gives the name that an entry of the archive is written as. name has
// been through normalName.
func (s Selection) target(name string) (string, action) {
	if s.strict {
		// The runner's installer strips this prefix whatever the platform is.
		name = strings.TrimPrefix(name, "Files/")
	}
	if name == s.file {
		return s.as, take
	}
	if s.dir != "" {
		if inside, ok := strings.CutPrefix(name, s.dir+"/"); ok {
			return inside, take
		}
	}
	if s.strict {
		return "", refuse
	}
	return "", pass
}

// normalName brings the name of an entry into one spelling: no leading "./" (nor
// "/" in an image), no trailing slash. The empty result is the root itself. A
// name that climbs is refused wherever it leads.
func (s Selection) normalName(name string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: a name of %d bytes", ErrUnsafe, len(name))
	}
	trimmed := strings.TrimRight(strings.TrimPrefix(name, "./"), "/")
	if !s.strict {
		// Some tools write images with a leading slash; an archive of a plugin has
		// no reason to.
		trimmed = strings.TrimPrefix(trimmed, "/")
	}
	if trimmed == "." {
		return "", nil
	}
	for element := range strings.SplitSeq(trimmed, "/") {
		if element == ".." {
			return "", fmt.Errorf("%w: name %.80q climbs", ErrUnsafe, name)
		}
	}
	return trimmed, nil
}

// checkName refuses names that are written somewhere else, or mean something
// else, on one of the systems that plugins are for.
func checkName(name string) error {
	elements := strings.Split(name, "/")
	if len(elements) > maxDepth {
		return fmt.Errorf("%w: %.80q is more than %d folders deep", ErrUnsafe, name, maxDepth)
	}
	for _, element := range elements {
		if problem := artifact.FileNameProblem(element); problem != "" {
			return fmt.Errorf("%w: name %.80q: %.80q: %s", ErrUnsafe, name, element, problem)
		}
	}
	return nil
}

// removesExecutable says whether the entry is a whiteout (OCI image
// specification 1.1, layer.md) of the executable or of a folder it is in.
func (s Selection) removesExecutable(name string) bool {
	dir, base, nested := cutLast(name)
	hidden, ok := strings.CutPrefix(base, ".wh.")
	if !ok || s.strict {
		return false
	}
	removed := dir
	if hidden != ".wh..opq" {
		removed = hidden
		if nested {
			removed = dir + "/" + hidden
		}
	}
	return removed == "" || s.file == removed || strings.HasPrefix(s.file, removed+"/")
}

const (
	maxName  = 1024
	maxDepth = 32
)

func cutLast(path string) (dir, base string, found bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}
