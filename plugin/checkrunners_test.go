package plugin_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// entryOn is a [[runners]] entry that uses a simulated cloud, with changes to its
// clouds.yaml, plugin_config and connector_config.
type entryOn struct {
	seed                       func(*sim.Seed)
	url                        string
	clouds                     []string // pairs: old, new
	modes                      map[string]os.FileMode
	config, connector, network map[string]any
	runner                     string
}

// opensshKey is a key as ssh-keygen writes it.
func opensshKey(t *testing.T, passphrase string) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

func (e entryOn) check(t *testing.T) []plugin.Finding {
	t.Helper()
	seed := sim.DefaultSeed()
	if e.seed != nil {
		e.seed(&seed)
	}
	cloud, err := sim.New(sim.Options{Seed: &seed})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	url := e.url
	if url == "" {
		url = "https://cloud.example"
	}
	files := map[string]string{
		"clouds.yaml": strings.NewReplacer(e.clouds...).Replace(string(cloud.CloudsYAML(url))), "config.toml": "",
		"clouds-public.yaml": "public-clouds: {}", "key.pem": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"pkcs8.pem": "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
		"rsa.pem":   "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
		"openssh":   opensshKey(t, ""), "locked": opensshKey(t, "open sesame"),
	}
	for name, content := range files {
		mode := os.FileMode(0o600)
		if m, set := e.modes[name]; set {
			mode = m
		}
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	server := map[string]any{"flavor": "m1.small", "image": "Ubuntu 24.04", "networks": []any{"private"}}
	config := map[string]any{"cloud": sim.CloudPassword, "clouds_config": filepath.Join(folder, "clouds.yaml"), "name": "runner", "server": server}
	maps.Copy(config, e.config)
	maps.Copy(server, e.network)
	connector := map[string]any{"username": "runner", "password": "secret", "use_static_credentials": true}
	maps.Copy(connector, e.connector)
	if name, ok := connector["key_path"].(string); ok {
		connector["key_path"] = filepath.Join(folder, name)
	}
	entry := map[string]any{"name": "openstack", "executor": "instance", "autoscaler": map[string]any{
		"plugin": "openstack", "max_instances": int64(1), "plugin_config": config, "connector_config": connector,
	}}
	content := map[string]any{"concurrent": int64(1), "runners": []any{entry}}
	about := plugin.RunnerConfig{Path: filepath.Join(folder, "config.toml"), Content: content, RunnerVersion: e.runner}
	return plugin.CheckRunners(t.Context(), about, []map[string]any{entry}, nil, plugin.WithTransport(cloud.Transport()))
}

// TestCheckWouldHaveCaughtIt: what keeps jobs from running, or secrets from being
// safe, is told before the runner starts.
func TestCheckWouldHaveCaughtIt(t *testing.T) {
	t.Parallel()
	only := func(v4, v6 string) func(*sim.Seed) {
		return func(s *sim.Seed) {
			n := sim.Network{Name: "only", Shared: true}
			if v4 != "" {
				n.IPv4 = netip.MustParsePrefix(v4)
			}
			if v6 != "" {
				n.IPv6 = netip.MustParsePrefix(v6)
			}
			s.Networks = append(s.Networks, n)
		}
	}
	on := map[string]any{"networks": []any{"only"}}
	for name, row := range map[string]struct {
		entry         entryOn
		subject, says string
		wrong         bool
	}{
		"IPv6 only":                  {entryOn{seed: only("", "fd00:99::/64"), network: on}, "address_family", "set address_family = \"ipv6\"", true},
		"IPv6 only, and asked for":   {entryOn{seed: only("", "fd00:99::/64"), network: on, config: map[string]any{"address_family": "ipv6"}}, "address_family", "", false},
		"IPv4 only, IPv6 asked for":  {entryOn{seed: only("10.99.0.0/16", ""), network: on, config: map[string]any{"address_family": "ipv6"}}, "address_family", "IPv4 subnets only", true},
		"both":                       {entryOn{}, "address_family", "", false},
		"no subnet":                  {entryOn{seed: only("", ""), network: on}, "server.networks", "has no subnet", true},
		"clouds.yaml for all":        {entryOn{modes: map[string]os.FileMode{"clouds.yaml": 0o666}}, "clouds.yaml", "can be changed by everyone (-rw-rw-rw-)", false},
		"clouds.yaml read by all":    {entryOn{modes: map[string]os.FileMode{"clouds.yaml": 0o644}}, "clouds.yaml", "can be read by everyone (-rw-r--r--)", false},
		"clouds.yaml of a group":     {entryOn{modes: map[string]os.FileMode{"clouds.yaml": 0o640}}, "clouds.yaml", "", false},
		"config.toml for all":        {entryOn{modes: map[string]os.FileMode{"config.toml": 0o646}}, "config.toml", "can be changed by everyone", false},
		"who may choose the profile": {entryOn{modes: map[string]os.FileMode{"clouds-public.yaml": 0o666}}, "clouds.yaml", "clouds-public.yaml can be changed by everyone", false},
		"a profile read by all":      {entryOn{modes: map[string]os.FileMode{"clouds-public.yaml": 0o644}}, "clouds.yaml", "", false},
		"a key read by all":          {entryOn{modes: map[string]os.FileMode{"key.pem": 0o644}, connector: map[string]any{"key_path": "key.pem"}}, "key_path", "has secrets and can be read by everyone", false},
		"a key":                      {entryOn{connector: map[string]any{"key_path": "key.pem"}}, "key_path", "", false},
		"a key of OpenSSH":           {entryOn{connector: map[string]any{"key_path": "openssh"}}, "key_path", "", false},
		"with a passphrase":          {entryOn{connector: map[string]any{"key_path": "locked"}}, "key_path", "has a passphrase", true},
		"with a passphrase, PKCS 8":  {entryOn{connector: map[string]any{"key_path": "pkcs8.pem"}}, "key_path", "has a passphrase", true},
		"with a passphrase, OpenSSL": {entryOn{connector: map[string]any{"key_path": "rsa.pem"}}, "key_path", "has a passphrase", true},
		"a service without TLS":      {entryOn{clouds: []string{"region_name:", "compute_endpoint_override: http://cloud.example/compute/v2.1\n        region_name:"}}, "clouds.yaml", "the compute service at http://cloud.example/compute/v2.1/ has no TLS", false},
		"no certificate":             {entryOn{clouds: []string{"region_name:", "verify: false\n        region_name:"}}, "clouds.yaml", "verify is false", false},
		"no TLS":                     {entryOn{url: "http://cloud.example"}, "clouds.yaml", "has no TLS", false},
		"no TLS on this machine":     {entryOn{url: "http://127.0.0.1:5000"}, "clouds.yaml", "", false},
		"insecure":                   {entryOn{clouds: []string{"region_name:", "insecure: true\n        region_name:"}}, "clouds.yaml", "not checked", false},
		"a key without effect":       {entryOn{clouds: []string{"region_name:", "regoin_name: x\n        region_name:"}}, "clouds.yaml", `"regoin_name" is an unknown key; did you mean region_name?`, false},
		"floating, not waited for":   {entryOn{connector: map[string]any{"use_external_addr": true}}, "use_external_addr", "set wait_for_floating_ip in plugin_config", false},
		"floating, waited for":       {entryOn{connector: map[string]any{"use_external_addr": true}, config: map[string]any{"wait_for_floating_ip": true}}, "use_external_addr", "", false},
		"a port, and 17.9.0":         {entryOn{runner: "17.9.0", connector: map[string]any{"protocol_port": int64(2222)}}, "connector_config.protocol_port", "needs GitLab Runner 17.11.0 or later", true},
		"a port, and 17.11.0":        {entryOn{runner: "17.11.0", connector: map[string]any{"protocol_port": int64(2222)}}, "connector_config.protocol_port", "", false},
		"a port, and 18.0.0":         {entryOn{runner: "18.0.0~beta.12.gabcdef", connector: map[string]any{"protocol_port": int64(2222)}}, "connector_config.protocol_port", "", false},
		"the usual port, and 17.9.0": {entryOn{runner: "17.9.0", connector: map[string]any{"protocol_port": int64(22)}}, "connector_config.protocol_port", "", false},
		"WinRM with TLS, and 17.9.0": {entryOn{runner: "17.9.0", connector: map[string]any{"protocol": "winrm+https"}}, "connector_config.protocol = \"winrm+https\"", "cannot connect", true},
		"a runner that is too old":   {entryOn{runner: "16.10.0"}, "gitlab-runner", "older than 16.11.0", true},
		"a runner":                   {entryOn{runner: "16.11.0"}, "gitlab-runner", "version 16.11.0", false},
		"no runner":                  {entryOn{}, "gitlab-runner", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && row.entry.modes != nil {
				return // it has no such modes
			}
			var said []string
			wrong := false
			findings := row.entry.check(t)
			for _, f := range findings {
				if f.Subject == row.subject && (!f.OK || f.Note || f.Subject == "gitlab-runner") {
					said = append(said, f.Detail)
					wrong = wrong || !f.OK
				}
			}
			text := strings.Join(said, "\n")
			if row.says == "" && text != "" || !strings.Contains(text, row.says) || wrong != row.wrong {
				t.Errorf("wrong: %v, want %v and %q: %q\n%+v", wrong, row.wrong, row.says, text, findings)
			}
		})
	}
}
