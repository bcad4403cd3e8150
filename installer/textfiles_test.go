package installer_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// TestTextFiles: what editors and shells of Windows write. Notepad and Windows
// PowerShell put a byte order mark before UTF-8, and > writes UTF-16.
func TestTextFiles(t *testing.T) {
	t.Parallel()
	key := trusttest.NewKey(t)
	dir := t.TempDir()
	policy := "version = 1\n[[rule]]\nscope = \"**\"\n[[rule.key]]\nfile = \"cosign.pub\"\n"
	for name, file := range map[string]struct {
		content string
		read    func(content []byte) error
	}{
		"policy": {policy, func(content []byte) error {
			_, err := installer.ParsePolicy(content, func(string) ([]byte, error) { return key.PublicPEM(t), nil })
			return err
		}},
		"key that a policy names": {string(key.PublicPEM(t)), func(content []byte) error {
			if err := os.WriteFile(filepath.Join(dir, "cosign.pub"), content, 0o600); err != nil {
				return err
			}
			_, err := installer.ParsePolicy([]byte(policy), installer.FilesBeside(filepath.Join(dir, "policy.toml")))
			return err
		}},
		"key": {string(key.PublicPEM(t)), func(content []byte) error {
			_, err := installer.RequireKey(content, installer.KeyOptions{})
			return err
		}},
		"trusted root": {string(installer.PublicTrustedRootJSON()), func(content []byte) error {
			_, err := installer.LoadTrustedRoot(content)
			return err
		}},
		"lock": {"version = 1\n", func(content []byte) error {
			_, err := installer.ParseLock(content)
			return err
		}},
		"runner's configuration": {"concurrent = 1\n", func(content []byte) error {
			_, err := installer.ParseRunnerConfig(content)
			return err
		}},
	} {
		for form, content := range map[string][]byte{
			"plain": []byte(file.content), "lines of Windows": []byte(strings.ReplaceAll(file.content, "\n", "\r\n")), "byte order mark": []byte("\ufeff" + file.content),
		} {
			if err := file.read(content); err != nil {
				t.Errorf("%s, %s: %v", name, form, err)
			}
		}
		utf16Text, err := binary.Append(nil, binary.LittleEndian, utf16.Encode([]rune("\ufeff"+file.content)))
		if err != nil {
			t.Fatal(err)
		}
		if err := file.read(utf16Text); err == nil || !strings.Contains(err.Error(), "UTF-16") {
			t.Errorf("%s, UTF-16: %v", name, err)
		}
	}
}

// TestPathsInConfig: a path of any system is the runner's own business, and one
// entry with a path spoils no other.
func TestPathsInConfig(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"C:/x/plugin.exe", `C:\x\plugin.exe`, `.\plugin.exe`, `\\server\share\plugin.exe`, "./plugin", "/opt/plugin", "~/plugin"} {
		text := "[[runners]]\n[runners.autoscaler]\nplugin = '" + path + "'\n[[runners]]\n[runners.autoscaler]\nplugin = 'aws:1'\n"
		plugins, err := installer.ParseRunnerConfig([]byte(text))
		if err != nil || len(plugins) != 2 || !plugins[0].Local || plugins[1].Local {
			t.Errorf("%s: %+v, %v", path, plugins, err)
		}
		if _, err := installer.ParseReference(path); !errors.Is(err, installer.Reason("reference")) || !strings.Contains(err.Error(), "a path") {
			t.Errorf("%s: %v; want reference that says it is a path", path, err)
		}
	}
}
