package docstest

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCommandsAreKnown: every command of the documentation is of a program that
// some test looks at, or of somebody else's. fleeting-plugin's are parsed beside
// its code, make's in TestMakeTargetsExist; of our two other commands, every
// word and flag has to be in their sources.
func TestCommandsAreKnown(t *testing.T) {
	t.Parallel()
	others := []string{"cd", "cosign", "cp", "curl", "echo", "export", "gh", "git", "gitlab-runner", "go", "helm", "kubectl", "mkdir", "openssl", "openstack", "source", "ssh", "ssh-keygen", "sha256sum", "tar"}
	seen := 0
	for _, language := range []string{"sh", "bash", "console"} {
		page, folder := "", ""
		for _, block := range blocks(t, language) {
			if block.File != page {
				page, folder = block.File, root
			}
			for _, line := range block.Commands() {
				words := Words(line)
				for len(words) > 0 && strings.Contains(words[0], "=") {
					words = words[1:] // a variable of the command's environment
				}
				if len(words) == 0 {
					continue
				}
				seen++
				switch program := path.Base(words[0]); {
				case program == "cd" && exists(root, words[1]):
					folder = filepath.Join(root, words[1])
				case program == "make" || program == "fleeting-plugin" || slices.Contains(others, program):
				case program == "fleeting-plugin-openstack" || program == "openstack-simulator":
					checkWords(t, block, program, words[1:])
				case strings.HasPrefix(words[0], "./"):
					if !exists(folder, words[0]) {
						t.Errorf("%s: %s has no %s", block.Where(), folder, words[0])
					}
				default:
					t.Errorf("%s: nobody checks commands of %s", block.Where(), program)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands found", seen)
	}
}

func exists(folder, name string) bool {
	_, err := os.Stat(filepath.Join(folder, filepath.FromSlash(name)))
	return err == nil
}

func checkWords(t *testing.T, block Block, program string, args []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "cmd", program, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(content)
	}
	for i, arg := range args {
		flag := strings.TrimLeft(arg, "-")
		name, _, _ := strings.Cut(flag, "=")
		if (flag != arg || i == 0) && !strings.Contains(source.String(), `"`+name+`"`) {
			t.Errorf("%s: %s does not know %s", block.Where(), program, arg)
		}
	}
}
