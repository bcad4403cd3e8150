// Package places knows where each system keeps what our programs look for unless
// they are told: plugins, policies, the runner's configuration, credentials,
// certificates and clouds. It also tells a path from a reference.
//
// It opens none of these files, and it makes no folder.
package places

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/access"
)

// Places are the default places of one user of one system. Only [Of] and [On]
// make them.
type Places struct {
	system string
	lookup func(string) (string, bool)
	// guarded reports whether only administrators may write a folder.
	guarded func(dir string) error
}

// ErrUnknown reports a place that depends on a variable which is not set.
var ErrUnknown = errors.New("the place is not known")

// Of returns the places of this system, for the user whose environment lookup
// reads, as [os.LookupEnv] does. On Windows the variables are those that the
// system sets from its Known Folders: APPDATA, LOCALAPPDATA, ProgramData and
// USERPROFILE.
func Of(lookup func(string) (string, bool)) Places {
	return Places{system: runtime.GOOS, lookup: lookup, guarded: access.Guarded}
}

// On returns the places of a system by its name in Go, for tests. Every folder
// counts as one that only administrators may write.
func On(system string, lookup func(string) (string, bool)) Places {
	return Places{system: system, lookup: lookup, guarded: func(string) error { return nil }}
}

func (p Places) env(name string) string {
	value, _ := p.lookup(name)
	return value
}

func (p Places) windows() bool { return p.system == "windows" }

// join joins elements as the system of the places does, "" if the first is empty.
func (p Places) join(base string, elements ...string) string {
	if base == "" {
		return ""
	}
	if !p.windows() {
		return path.Join(append([]string{base}, elements...)...)
	}
	return strings.TrimRight(base, `\/`) + `\` + strings.Join(elements, `\`)
}

// Home is the user's own folder, "" if it is not known. Unix tools on Windows set
// HOME to a folder of theirs, so that it does not count there.
func (p Places) Home() string {
	if p.windows() {
		return p.env("USERPROFILE")
	}
	return p.env("HOME")
}

// Plugins is where GitLab Runner looks for plugins: FLEETING_PLUGIN_PATH, else
// fleeting/plugins in APPDATA on Windows, in .config in HOME elsewhere, macOS
// included.
func (p Places) Plugins() (string, error) {
	if dir := p.env("FLEETING_PLUGIN_PATH"); dir != "" {
		return dir, nil
	}
	variable, base := "HOME", p.join(p.env("HOME"), ".config")
	if p.windows() {
		variable, base = "APPDATA", p.env("APPDATA")
	}
	if base == "" {
		return "", fmt.Errorf("%w: neither FLEETING_PLUGIN_PATH nor %s is set, so plugins have no folder", ErrUnknown, variable)
	}
	return p.join(base, "fleeting", "plugins"), nil
}

// config is the folder of a user's configuration, "" if it is not known.
func (p Places) config() string {
	if p.windows() {
		return p.env("APPDATA")
	}
	if dir := p.env("XDG_CONFIG_HOME"); dir != "" {
		return dir
	}
	return p.join(p.env("HOME"), ".config")
}

// Policy is the user's policy, "" if its place is not known.
func (p Places) Policy() string { return p.join(p.config(), "fleeting", "policy.toml") }

// RunnerConfig is where GitLab Runner reads its configuration: on Windows in the
// folder that it is started in, elsewhere in /etc if it is root's and in the user's
// home if not.
// https://docs.gitlab.com/runner/configuration/advanced-configuration/
func (p Places) RunnerConfig(root bool) string {
	switch {
	case p.windows():
		return "config.toml"
	case root:
		return "/etc/gitlab-runner/config.toml"
	case p.env("HOME") == "":
		return "config.toml"
	}
	return p.join(p.env("HOME"), ".gitlab-runner", "config.toml")
}

// Cache is the user's folder for what can be made again, as [os.UserCacheDir] has
// it; "" if it is not known.
func (p Places) Cache() string {
	switch {
	case p.windows():
		return p.env("LOCALAPPDATA")
	case p.env("XDG_CACHE_HOME") != "":
		return p.env("XDG_CACHE_HOME")
	case p.system == "darwin":
		return p.join(p.env("HOME"), "Library", "Caches")
	}
	return p.join(p.env("HOME"), ".cache")
}

// State is the user's folder for what programs remember, "" if it is not known.
func (p Places) State() string {
	switch {
	case p.windows():
		return p.env("LOCALAPPDATA")
	case p.env("XDG_STATE_HOME") != "":
		return p.env("XDG_STATE_HOME")
	}
	return p.join(p.env("HOME"), ".local", "state")
}

// Credentials are the files with the credentials of registries, in the order of
// docker, podman and oras:
// https://docs.docker.com/reference/cli/docker/#configuration-files and
// containers-auth.json(5).
func (p Places) Credentials() []string {
	files := []string{p.env("REGISTRY_AUTH_FILE")}
	if dir := p.env("DOCKER_CONFIG"); dir != "" {
		files = append(files, p.join(dir, "config.json"))
	} else {
		files = append(files, p.join(p.Home(), ".docker", "config.json"))
	}
	config := p.join(p.Home(), ".config")
	if !p.windows() {
		files = append(files, p.join(p.env("XDG_RUNTIME_DIR"), "containers", "auth.json"))
		if dir := p.env("XDG_CONFIG_HOME"); dir != "" {
			config = dir
		}
	}
	files = append(files, p.join(config, "containers", "auth.json"))
	return present(files)
}

// Certificates are the folders with certificate authorities by host, podman's and
// docker's: containers-certs.d(5),
// https://docs.docker.com/engine/security/certificates/. The error says which
// folder of Windows is left out, because others than administrators may write it.
func (p Places) Certificates() ([]string, error) {
	home := p.Home()
	folders := []string{p.join(home, ".config", "containers", "certs.d"), p.join(home, ".docker", "certs.d")}
	if !p.windows() {
		return present(append(folders, "/etc/containers/certs.d", "/etc/docker/certs.d")), nil
	}
	shared, err := p.shared("docker", "certs.d")
	return present(append(folders, shared)), err
}

// OpenStack are the folders in which clouds.yaml is looked for behind the current
// one, those of openstacksdk and of gophercloud, in openstacksdk's order; the error
// is as for [Places.Certificates].
// https://docs.openstack.org/openstacksdk/latest/user/config/configuration.html
func (p Places) OpenStack() ([]string, error) {
	if p.windows() {
		shared, err := p.shared("OpenStack", "openstack")
		return present([]string{
			p.join(p.env("LOCALAPPDATA"), "OpenStack", "openstack"), p.join(p.env("APPDATA"), "openstack"),
			p.join(p.Home(), ".config", "openstack"), shared,
		}), err
	}
	own, all := []string{p.join(p.config(), "openstack")}, []string{"/etc/openstack"}
	if p.system == "darwin" {
		library := p.join("/Library", "Application Support", "openstack")
		own, all = append([]string{p.join(p.Home(), library)}, own...), append([]string{library}, all...)
	}
	return present(append(own, all...)), nil
}

// shared is a folder in ProgramData, in which every user may make folders: one
// counts only if others than administrators may not write it.
func (p Places) shared(elements ...string) (string, error) {
	base := p.env("ProgramData")
	if base == "" {
		return "", nil
	}
	for i := range elements {
		if err := p.guarded(p.join(base, elements[:i+1]...)); err != nil {
			return "", err
		}
	}
	return p.join(base, elements...), nil
}

func present(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
