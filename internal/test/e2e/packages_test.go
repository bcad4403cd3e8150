//go:build e2e

package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testPackages makes the .deb and .rpm packages, installs the former with dpkg
// below a folder of its own and runs what it installed.
func testPackages(t *testing.T, l *lab) {
	arch := architectures()[0]
	executables := []string{
		"fleeting-plugin=" + filepath.Join(l.dir, "tool", arch),
		"fleeting-plugin-openstack=" + filepath.Join(l.dir, "dist", l.openstack.title, "linux", arch, "plugin"),
	}
	out, notices := filepath.Join(l.dir, "packages"), filepath.Join(l.dir, "notices")
	l.report.check(t, "fleeting-plugin", "licences of what is packaged", func(t *testing.T) {
		if err := os.MkdirAll(notices, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, executable := range executables {
			_, file, _ := strings.Cut(executable, "=")
			text := run(t, nil, filepath.Join(l.dir, "tool", arch), "licenses", "--license", "../../../LICENSE", file)
			writeFile(t, filepath.Join(notices, filepath.Base(file)+".txt"), text)
		}
	})
	l.report.check(t, "make", "manual pages and completions", l.makeShare)
	l.report.check(t, "nfpm", "make .deb and .rpm packages, twice the same", func(t *testing.T) {
		again := filepath.Join(t.TempDir(), "again")
		pack := func(dir string, executables ...string) {
			args := []string{"run", "-C", "../../dist/packages", ".", "-o", dir, "-version", openstackVersion, "-arch", arch, "-notices", notices, "-share", l.share()}
			run(t, []string{"SOURCE_DATE_EPOCH=1700000000"}, "go", append(args, executables...)...)
		}
		pack(out, executables...)
		pack(again, executables[1])
		for _, name := range []string{"fleeting-plugin-openstack_" + openstackVersion + "_amd64.deb", "fleeting-plugin-openstack-" + openstackVersion + "-1.x86_64.rpm"} {
			first, err := os.ReadFile(filepath.Join(out, name))
			second, otherErr := os.ReadFile(filepath.Join(again, name))
			if err := errors.Join(err, otherErr); err != nil {
				t.Fatal(err)
			}
			if string(first) != string(second) {
				t.Errorf("%s is another one the second time", name)
			}
		}
	})
	l.report.check(t, "dpkg "+version(t, "dpkg", "--version"), "install both packages and run what they bring", func(t *testing.T) {
		root := filepath.Join(l.dir, "root")
		for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		writeFile(t, filepath.Join(root, "var/lib/dpkg/status"), "")
		debs, err := filepath.Glob(filepath.Join(out, "*.deb"))
		if err != nil || len(debs) != 2 {
			t.Fatalf("packages: %v, %v", debs, err)
		}
		run(t, nil, "dpkg", append([]string{"--root", root, "--install"}, debs...)...)
		l.runInstalled(t, root)
	})
	l.report.check(t, "rpm "+version(t, "rpm", "--version"), "install both packages and run what they bring", func(t *testing.T) {
		root := filepath.Join(l.dir, "rpm-root")
		rpms, err := filepath.Glob(filepath.Join(out, "*.rpm"))
		if err != nil || len(rpms) != 2 {
			t.Fatalf("packages: %v, %v", rpms, err)
		}
		run(t, nil, "rpm", append([]string{"--root", root, "--install"}, rpms...)...)
		l.runInstalled(t, root)
	})
}

// share is where the Makefile writes what packages bring besides executables.
func (l *lab) share() string { return filepath.Join(l.dir, "build", "share") }

func (l *lab) makeShare(t *testing.T) {
	run(t, nil, "make", "-C", "../../..", "--no-print-directory", "share",
		"BUILD="+filepath.Join(l.dir, "build"), "FLEETING="+filepath.Join(l.dir, "tool", architectures()[0]))
}

// runInstalled runs both executables below a root, and reads what else there is.
func (l *lab) runInstalled(t *testing.T, root string) {
	t.Helper()
	if out := run(t, nil, filepath.Join(root, "usr/bin/fleeting-plugin"), "version"); !strings.Contains(out, openstackVersion) {
		t.Errorf("fleeting-plugin says %s", out)
	}
	l.serveHere(t, l.openstack, "E2E_PLUGIN="+filepath.Join(root, "usr/bin/fleeting-plugin-openstack"))
	for _, name := range []string{"fleeting-plugin", "fleeting-plugin-openstack"} {
		text, err := os.ReadFile(filepath.Join(root, "usr/share/doc", name, "copyright"))
		if err != nil || !strings.Contains(string(text), "MIT License") {
			t.Errorf("the licence in %s: %v", name, err)
		}
		linked := modulesOf(t, filepath.Join(root, "usr/bin", name))
		for _, module := range linked {
			if !strings.Contains(string(text), "\n"+module+": ") {
				t.Errorf("the licences in %s have none of %s", name, module)
			}
		}
		t.Logf("%s: %d modules, licences of %d bytes", name, len(linked), len(text))
	}
	pages := 0
	for path, content := range l.shared(t) {
		installed, err := os.ReadFile(filepath.Join(root, "usr/share", path))
		if err != nil || string(installed) != content {
			t.Errorf("usr/share/%s is not what was made: %v", path, err)
		}
		if strings.HasPrefix(path, "man/") {
			pages++
			readManual(t, filepath.Join(root, "usr/share", path))
		}
	}
	if pages == 0 {
		t.Error("there is no manual page")
	}
	l.complete(t, root)
}

// modulesOf are the modules that are linked into an executable, as `go version -m`
// says them.
func modulesOf(t *testing.T, executable string) []string {
	t.Helper()
	var modules []string
	for line := range strings.Lines(run(t, nil, "go", "version", "-m", executable)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "dep" {
			modules = append(modules, fields[1]+" "+fields[2])
		}
	}
	if len(modules) < 10 {
		t.Errorf("%s has %d modules only", executable, len(modules))
	}
	return modules
}

// shared is what lies below share, in the packages of both executables: paths
// below /usr/share to contents.
func (l *lab) shared(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(l.share(), "*", "*", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(l.share(), file)
		if err != nil {
			t.Fatal(err)
		}
		_, path, _ := strings.Cut(rel, "/") // without the package's name
		found[path] = string(content)
	}
	return found
}

// readManual has man set a page, without a word of complaint.
func readManual(t *testing.T, file string) {
	t.Helper()
	out, all, err := try(t, []string{"LC_ALL=C.UTF-8", "MANWIDTH=200", "MANROFFSEQ=", "MANPAGER=cat"}, "man", "--warnings", "--local-file", file)
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	if err != nil || out != all || !strings.Contains(out, "NAME") || !strings.Contains(out, name) {
		t.Errorf("man %s: %v\n%s", file, err, all)
	}
}

// complete has bash complete a command with the installed script.
func (l *lab) complete(t *testing.T, root string) {
	t.Helper()
	const ask = `source /usr/share/bash-completion/bash_completion
source "$1/usr/share/bash-completion/completions/fleeting-plugin"
PATH=$1/usr/bin:$PATH COMP_WORDS=(fleeting-plugin insp) COMP_CWORD=1 COMP_LINE="fleeting-plugin insp" COMP_POINT=20 COMP_TYPE=9
complete -p fleeting-plugin
__start_fleeting-plugin
echo "completed ${COMPREPLY[*]}"`
	out := run(t, nil, "bash", "-c", ask, "bash", root)
	if !strings.Contains(out, "complete ") || !strings.Contains(out, "completed inspect") {
		t.Errorf("bash says %q", out)
	}
}
