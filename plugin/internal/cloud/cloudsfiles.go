package cloud

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
	"github.com/radome-io/fleeting-plugin-openstack/internal/textfile"
)

// configLimit bounds a file of the clouds.yaml family.
const configLimit = 1 << 20

// cloudsFiles are clouds.yaml and what belongs to it; empty for a file that there
// is not.
type cloudsFiles struct {
	clouds, secure, public string
	// from says where the entry comes from, for people.
	from string
	// watched are the places at which one of them may appear.
	watched []string
	// read is their stamp from before they were read.
	read string
}

// findClouds looks at the given path, else in OS_CLIENT_CONFIG_FILE, else in the
// working directory and in openstacksdk's places, and then for the files beside it.
func findClouds(path string, lookupEnv func(string) (string, bool)) (cloudsFiles, error) {
	folders := standardFolders(lookupEnv)
	candidates := []string{expand(path, lookupEnv)}
	if named := env(lookupEnv, "OS_CLIENT_CONFIG_FILE"); path == "" && named != "" {
		candidates = []string{expand(named, lookupEnv)}
	} else if path == "" {
		candidates = inFolders(folders, "clouds")
	}
	clouds, err := firstOf(candidates)
	if err != nil {
		return cloudsFiles{}, fmt.Errorf("clouds.yaml: %w", err)
	}
	if clouds == "" {
		if path == "" && len(candidates) > 1 {
			candidates = inFolders(folders, "clouds", ".yaml")
		}
		return cloudsFiles{}, fmt.Errorf("clouds.yaml: none at %s: %w", strings.Join(spelledOut(candidates), ", "), fs.ErrNotExist)
	}
	files := cloudsFiles{clouds: clouds, from: clouds}
	beside := []string{filepath.Dir(clouds)}
	public := inFolders(beside, "clouds-public")
	if files.public, err = firstOf(public); err != nil {
		return cloudsFiles{}, fmt.Errorf("clouds-public.yaml: %w", err)
	}
	if path == "" {
		beside = append(beside, folders...)
	}
	secure := inFolders(beside, "secure")
	named := env(lookupEnv, "OS_CLIENT_SECURE_FILE")
	if named != "" {
		secure = []string{expand(named, lookupEnv)}
	}
	files.watched = slices.Concat(secure, public)
	if files.secure, err = firstOf(secure); err != nil {
		return cloudsFiles{}, fmt.Errorf("secure.yaml: %w", err)
	}
	if named != "" && files.secure == "" {
		return cloudsFiles{}, fmt.Errorf("secure.yaml: none at %s, which OS_CLIENT_SECURE_FILE names: %w", named, fs.ErrNotExist)
	}
	return files, nil
}

// standardFolders are where clouds.yaml may be. A folder that others may write is
// left out, for the credentials in it may be theirs.
func standardFolders(lookupEnv func(string) (string, bool)) []string {
	folders, _ := places.Of(lookupEnv).OpenStack()
	return append([]string{"."}, folders...)
}

// inFolders are the spellings of a file in folders.
func inFolders(folders []string, name string, suffixes ...string) []string {
	if len(suffixes) == 0 {
		suffixes = []string{".yaml", ".yml", ".json"} // JSON is YAML
	}
	var files []string
	for _, folder := range folders {
		for _, suffix := range suffixes {
			files = append(files, filepath.Join(folder, name+suffix))
		}
	}
	return files
}

// firstOf returns the first of the files that is there; empty if none is.
func firstOf(files []string) (string, error) {
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			return file, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}

// spelledOut makes paths absolute: readers of the runner's log do not know its
// working directory.
func spelledOut(paths []string) []string {
	out := slices.Clone(paths)
	for i, path := range paths {
		if absolute, err := filepath.Abs(path); err == nil {
			out[i] = absolute
		}
	}
	return out
}

// expand replaces a ~ in front of a path by the home folder, as openstacksdk does.
func expand(path string, lookupEnv func(string) (string, bool)) string {
	rest, ok := strings.CutPrefix(path, "~")
	if home := places.Of(lookupEnv).Home(); ok && home != "" && (rest == "" || os.IsPathSeparator(rest[0])) {
		return home + rest
	}
	return path
}

// readConfig reads a text file that people wrote.
func readConfig(path string) ([]byte, error) { return readText(path, textfile.UTF8) }

// readText reads a file that people wrote and decodes it. It neither waits for a
// pipe nor reads without end.
func readText(path string, decode func([]byte) ([]byte, error)) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(file, configLimit+1))
	if err != nil {
		return nil, err
	}
	if len(content) > configLimit {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, configLimit)
	}
	if content, err = decode(content); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// stamp tells whether the credentials changed on disk, or whether they can be
// read now that could not be before: who may read a file changes neither its
// size nor its time.
func (f cloudsFiles) stamp() string {
	var b strings.Builder
	for _, path := range append([]string{f.clouds}, f.watched...) {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		fmt.Fprintf(&b, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		file, err := os.Open(path)
		if err != nil {
			fmt.Fprintln(&b, err)
			continue
		}
		_ = file.Close() // it was only looked at
	}
	return b.String()
}

// env is a variable of the environment, empty if it is not set.
func env(lookupEnv func(string) (string, bool), name string) string {
	value, _ := lookupEnv(name)
	return value
}
