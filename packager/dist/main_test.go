package dist_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer/version"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

func TestMain(m *testing.M) { os.Exit(sampleplugin.Main(m)) }

func scan(t testing.TB, dir string) *dist.Dist {
	t.Helper()
	var options dist.Options
	if runtime.GOOS == "windows" {
		options.Executables = noCompanion
	}
	found, err := dist.Scan(t.Context(), dir, options)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func parse(t testing.TB, text string) version.Version {
	t.Helper()
	v, err := version.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func platforms(d *dist.Dist) []string {
	var names []string
	for _, in := range d.Inputs() {
		names = append(names, in.Platform().String())
	}
	return names
}
