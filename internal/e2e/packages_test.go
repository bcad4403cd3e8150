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
	out := filepath.Join(l.dir, "packages")
	l.report.check(t, "nfpm", "make .deb and .rpm packages, twice the same", func(t *testing.T) {
		again := filepath.Join(t.TempDir(), "again")
		pack := func(dir string, executables ...string) {
			args := []string{"run", "-C", "../dist/packages", ".", "-o", dir, "-version", openstackVersion, "-arch", arch, "-license", "../../../LICENSE"}
			run(t, []string{"SOURCE_DATE_EPOCH=1700000000"}, "go", append(args, executables...)...)
		}
		pack(out, executables...)
		pack(again, executables[1])
		for _, name := range []string{"fleeting-plugin-openstack_0.2.0_amd64.deb", "fleeting-plugin-openstack-0.2.0-1.x86_64.rpm"} {
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

// runInstalled runs both executables below a root.
func (l *lab) runInstalled(t *testing.T, root string) {
	t.Helper()
	if out := run(t, nil, filepath.Join(root, "usr/bin/fleeting-plugin"), "version"); !strings.Contains(out, openstackVersion) {
		t.Errorf("fleeting-plugin says %s", out)
	}
	l.serveHere(t, l.openstack, "E2E_PLUGIN="+filepath.Join(root, "usr/bin/fleeting-plugin-openstack"))
}
