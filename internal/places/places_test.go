package places_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/places"
)

func TestIsPath(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"/opt/plugin", "./plugin", "../plugin", ".", "..", "~/plugin", "~runner/plugin", `C:\x\plugin.exe`, "C:/x/plugin.exe", "c:/x/plugin.exe",
		`c:\x`, "C:", "c:", "C:plugin.exe", `.\plugin.exe`, `..\plugin.exe`, `\\server\share\plugin.exe`, "//server/share/plugin.exe", `\plugin.exe`,
		`plugins\plugin.exe`, `\\?\C:\x\plugin.exe`,
	} {
		if !places.IsPath(text) {
			t.Errorf("%q is taken for a reference", text)
		}
	}
	for _, text := range []string{
		"", "openstack", "openstack:1.2", "c:1.2", "c:latest", "registry.example.com/team/plugin:1", "localhost:5000/x", "127.0.0.1:5000/x/y:1.0.0",
		"[::1]:5000/x", "team/plugin@sha256:aa", "fleeting-plugin-aws", "fleeting-plugin-aws.exe", "ghcr.io/a/b:>=1, <2",
	} {
		if places.IsPath(text) {
			t.Errorf("%q is taken for a path", text)
		}
	}
}

// environments of users, one of each system.
func environments() map[string]map[string]string {
	return map[string]map[string]string{
		"linux":  {"HOME": "/home/me", "XDG_RUNTIME_DIR": "/run/user/1"},
		"darwin": {"HOME": "/Users/me"},
		"windows": {
			"HOME": "/c/msys/me", "USERPROFILE": `C:\Users\me`, "APPDATA": `C:\Users\me\AppData\Roaming`, "LOCALAPPDATA": `C:\Users\me\AppData\Local`,
			"ProgramData": `C:\ProgramData\`,
		},
	}
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, ok := env[name]; return value, ok }
}

// TestPlaces holds where each system has what, and that no Unix path is a place
// of Windows: there /etc is a folder that every user can make.
func TestPlaces(t *testing.T) {
	t.Parallel()
	want := map[string]map[string][]string{
		"linux": {
			"plugins": {"/home/me/.config/fleeting/plugins"}, "policy": {"/home/me/.config/fleeting/policy.toml"},
			"runner": {"/home/me/.gitlab-runner/config.toml", "/etc/gitlab-runner/config.toml"}, "cache": {"/home/me/.cache"}, "state": {"/home/me/.local/state"},
			"credentials":  {"/home/me/.docker/config.json", "/run/user/1/containers/auth.json", "/home/me/.config/containers/auth.json"},
			"certificates": {"/home/me/.config/containers/certs.d", "/home/me/.docker/certs.d", "/etc/containers/certs.d", "/etc/docker/certs.d"},
			"openstack":    {"/home/me/.config/openstack", "/etc/openstack"},
		},
		"darwin": {
			"plugins": {"/Users/me/.config/fleeting/plugins"}, "policy": {"/Users/me/.config/fleeting/policy.toml"},
			"runner": {"/Users/me/.gitlab-runner/config.toml", "/etc/gitlab-runner/config.toml"}, "cache": {"/Users/me/Library/Caches"}, "state": {"/Users/me/.local/state"},
			"credentials":  {"/Users/me/.docker/config.json", "/Users/me/.config/containers/auth.json"},
			"certificates": {"/Users/me/.config/containers/certs.d", "/Users/me/.docker/certs.d", "/etc/containers/certs.d", "/etc/docker/certs.d"},
			"openstack":    {"/Users/me/Library/Application Support/openstack", "/Users/me/.config/openstack", "/Library/Application Support/openstack", "/etc/openstack"},
		},
		"windows": {
			"plugins": {`C:\Users\me\AppData\Roaming\fleeting\plugins`}, "policy": {`C:\Users\me\AppData\Roaming\fleeting\policy.toml`},
			"runner": {"config.toml", "config.toml"}, "cache": {`C:\Users\me\AppData\Local`}, "state": {`C:\Users\me\AppData\Local`},
			"credentials":  {`C:\Users\me\.docker\config.json`, `C:\Users\me\.config\containers\auth.json`},
			"certificates": {`C:\Users\me\.config\containers\certs.d`, `C:\Users\me\.docker\certs.d`, `C:\ProgramData\docker\certs.d`},
			"openstack": {
				`C:\Users\me\AppData\Local\OpenStack\openstack`, `C:\Users\me\AppData\Roaming\openstack`, `C:\Users\me\.config\openstack`,
				`C:\ProgramData\OpenStack\openstack`,
			},
		},
	}
	for system, env := range environments() {
		p := places.On(system, lookup(env))
		plugins, err := p.Plugins()
		certificates, certificatesErr := p.Certificates()
		openstack, openstackErr := p.OpenStack()
		if err := errors.Join(err, certificatesErr, openstackErr); err != nil {
			t.Errorf("%s: %v", system, err)
		}
		got := map[string][]string{
			"plugins": {plugins}, "policy": {p.Policy()}, "runner": {p.RunnerConfig(false), p.RunnerConfig(true)}, "cache": {p.Cache()}, "state": {p.State()},
			"credentials": p.Credentials(), "certificates": certificates, "openstack": openstack,
		}
		if diff := cmp.Diff(want[system], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", system, diff)
		}
	}
}

// TestNamed holds that variables that name a place come first, and that no empty
// variable makes a place relative to the current folder.
func TestNamed(t *testing.T) {
	t.Parallel()
	env := map[string]string{"FLEETING_PLUGIN_PATH": "/plugins", "REGISTRY_AUTH_FILE": "/a.json", "DOCKER_CONFIG": "/docker", "XDG_CONFIG_HOME": "/config", "XDG_CACHE_HOME": "/cache"}
	p := places.On("linux", lookup(env))
	plugins, err := p.Plugins()
	got := append([]string{plugins, p.Policy(), p.Cache()}, p.Credentials()...)
	want := []string{"/plugins", "/config/fleeting/policy.toml", "/cache", "/a.json", "/docker/config.json", "/config/containers/auth.json"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, system := range []string{"linux", "darwin", "windows"} {
		p := places.On(system, lookup(nil))
		if dir, err := p.Plugins(); !errors.Is(err, places.ErrUnknown) {
			t.Errorf("%s: plugins in %q, %v; want ErrUnknown", system, dir, err)
		}
		openstack, openstackErr := p.OpenStack()
		certificates, certificatesErr := p.Certificates()
		if err := errors.Join(openstackErr, certificatesErr); err != nil {
			t.Errorf("%s: %v", system, err)
		}
		for _, place := range append(append(append(p.Credentials(), openstack...), certificates...), p.Policy(), p.Cache(), p.State()) {
			shared := strings.HasPrefix(place, "/etc/") && system != "windows" || strings.HasPrefix(place, "/Library/") && system == "darwin"
			if place != "" && !shared {
				t.Errorf("%s: %q without a variable that says so", system, place)
			}
		}
	}
}
