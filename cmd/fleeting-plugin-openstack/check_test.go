package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rewrite changes the desk's config.toml.
func (d desk) rewrite(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(d.config)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), from) {
		t.Fatalf("config.toml does not say %q:\n%s", from, content)
	}
	if err := os.WriteFile(d.config, []byte(strings.Replace(string(content), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

const wholeConnector = "[runners.autoscaler.connector_config]\nusername = \"runner\"\npassword = \"secret\"\nuse_static_credentials = true\n"

// TestCheckLooksAtTheRunnersEntry: a configuration with which the runner does
// not start or no job can run is not called well.
func TestCheckLooksAtTheRunnersEntry(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	public := filepath.Join(folder, "key.pub")
	private := filepath.Join(folder, "key")
	marked := filepath.Join(folder, "marked")
	openstackFile := filepath.Join(folder, "openstack")
	windowsFile := filepath.Join(folder, "openstack.EXE")
	for path, content := range map[string]string{
		openstackFile: "",
		windowsFile:   "",
		public:        "ssh-ed25519 AAAA",
		marked:        "\xef\xbb\xbf-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
		private:       "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		from, to string
		code     int
		says     string
	}{
		"as it should be":              {"", "", exitOK, "ok    connector_config"},
		"no connector_config":          {wholeConnector, "", exitFailed, "WRONG  connector_config"},
		"no static credentials":        {"use_static_credentials = true\n", "", exitFailed, "without use_static_credentials = true"},
		"no username":                  {"username = \"runner\"\n", "", exitFailed, "without username"},
		"neither key nor password":     {"password = \"secret\"\n", "", exitFailed, "without key_path or password"},
		"a key and no password":        {"password = \"secret\"\n", "key_path = '" + private + "'\n", exitOK, "holds a private key"},
		"no such key":                  {"password = \"secret\"\n", "key_path = '" + private + "x'\n", exitFailed, private + "x:"},
		"a key with a byte order mark": {"password = \"secret\"\n", "key_path = '" + marked + "'\n", exitFailed, "begins with a byte order mark"},
		"a public key":                 {"password = \"secret\"\n", "key_path = '" + public + "'\n", exitFailed, "holds no private key"},
		"WinRM with a key":             {"password = \"secret\"\n", "protocol = \"winrm\"\nkey_path = '" + private + "'\n", exitFailed, "without password"},
		"a text for a number":          {"max_instances = 3", "max_instances = \"3\"", exitFailed, "must be a whole number, not a string"},
		"a text for a switch":          {"use_static_credentials = true", "use_static_credentials = \"true\"", exitFailed, "must be true or false, not a string"},
		"fewer than none":              {"max_instances = 3", "max_instances = -3", exitFailed, "must be positive"},
		"no max_instances":             {"max_instances = 3\n", "", exitOK, "as many servers as the plugin makes: 1000"},
		"max_instances mistyped":       {"max_instances = 3", "max_instance = 3", exitOK, "did you mean max_instances?"},
		"a key of a newer runner":      {"max_instances = 3", "max_instances = 3\nzzz = 3", exitOK, "up to 3 servers"},
		"more than a group may have":   {"max_instances = 3", "max_instances = 3000", exitFailed, "1000 servers at most"},
		"max_instances is 0":           {"max_instances = 3", "max_instances = 0", exitOK, "is 0, which sets no limit"},
		"one job at a time":            {"concurrent = 3\n", "", exitOK, "note  concurrent        is not set, so the runner runs one job at a time"},
		"fewer jobs than servers":      {"concurrent = 3\n", "concurrent = 2\n", exitOK, "2 jobs at a time, of the 3 that"},
		"fewer jobs than places":       {"max_instances = 3", "max_instances = 3\ncapacity_per_instance = 2", exitOK, "3 jobs at a time, of the 6 that"},
		"as many jobs as servers":      {"", "", exitOK, "ok    concurrent        3 jobs at a time"},
		"a limit of the entry":         {"executor = \"instance\"\n", "executor = \"instance\"\nlimit = 1\n", exitOK, "note  limit             one job at a time, of the 3"},
		"a text for the limit":         {"concurrent = 3\n", "concurrent = \"3\"\n", exitFailed, "must be a whole number, not a string"},
		"one server, one job":          {"max_instances = 3", "max_instances = 1", exitOK, "ok    concurrent"},
		"an executor without plugins":  {"executor = \"instance\"\n", "executor = \"shell\"\n", exitFailed, "WRONG  executor          shell starts no plugin"},
		"an executor mistyped":         {"executor = \"instance\"\n", "executor = \"docker-autoscale\"\n", exitFailed, "did you mean docker-autoscaler?"},
		"Docker without its section":   {"executor = \"instance\"\n", "executor = \"docker-autoscaler\"\n", exitFailed, "WRONG  runners.docker    is missing"},
		"Docker without an image":      {"executor = \"instance\"\n", "executor = \"docker-autoscaler\"\n[runners.docker]\ntls_verify = false\n", exitOK, "note  runners.docker    image is not set"},
		"Docker":                       {"executor = \"instance\"\n", "executor = \"docker-autoscaler\"\n[runners.docker]\nimage = \"alpine\"\n", exitOK, "ok    runners.docker    image alpine"},
		"no such protocol":             {"password = \"secret\"\n", "password = \"secret\"\nprotocol = \"telnet\"\n", exitFailed, "must be ssh, winrm or winrm+https, not \"telnet\""},
		"a port, the runner unknown":   {"password = \"secret\"\n", "password = \"secret\"\nprotocol_port = 2222\n", exitOK, "protocol_port needs 17.11.0 or later"},
		"more than the quota has":      {"", "", exitOK, "note  quota             room for 2 servers of this kind, those of the group included, of the 3"},
		"less than the quota has":      {"max_instances = 3", "max_instances = 2", exitOK, "ok    quota             room for 2 servers"},
		"a Windows image and a key":    {"password = \"secret\"\n", "key_path = '" + private + "'\n", exitFailed, "password, which winrm needs (the image has os_type=windows)"},
		"a Windows image, and SSH":     {"password = \"secret\"\n", "protocol = \"ssh\"\nkey_path = '" + private + "'\n", exitOK, "logs in as runner by ssh"},
		"no executor":                  {"executor = \"instance\"\n", "", exitFailed, "WRONG  executor          is not set"},
		"no such plugin":               {"registry.example/fleeting-plugin-openstack:1", "/nowhere/fleeting-plugin-openstack", exitOK, "without the file, the runner takes it"},
		"a plugin that cannot run":     {"\"registry.example/fleeting-plugin-openstack:1\"", "'" + openstackFile + "'", exitOK, "is no executable file"},
		"a program of Windows":         {"\"registry.example/fleeting-plugin-openstack:1\"", "'" + windowsFile + "'", exitOK, "is an executable file"},
		"no program of Windows":        {"\"registry.example/fleeting-plugin-openstack:1\"", `'C:\nowhere\openstack.exe'`, exitOK, "without the file, the runner takes it"},
		"no file on the drive":         {"\"registry.example/fleeting-plugin-openstack:1\"", `'C:openstack.exe'`, exitOK, "without the file, the runner takes it"},
		"no plugin":                    {"plugin = \"registry.example/fleeting-plugin-openstack:1\"\n", "", exitUsage, "choose one with --runner: openstack"},
		"nothing puts the key there":   {"password = \"secret\"\n", "key_path = '" + private + "'\n", exitOK, "so the image has to have it"},
		"an image unlike any":          {"Ubuntu 24.04", "zzzz", exitFailed, `there are: "Needs 20 GB"`},
		"user data with a blank":       {"[runners.autoscaler.plugin_config.server]\n", "[runners.autoscaler.plugin_config.server]\nuser_data = \" #cloud-config\"\n", exitOK, "begins with a blank"},
		"a setting one level too high": {"max_instances = 3", "max_instances = 3\nbuild_timeout = \"20m\"", exitFailed, "is in the wrong section: write build_timeout in [runners.autoscaler.plugin_config]"},
		"a section one level too high": {"[runners.autoscaler.plugin_config.server]", "[runners.autoscaler.server]", exitFailed, "wrong section: write [runners.autoscaler.plugin_config.server]\nWRONG  server.flavor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := goodServer
			if strings.HasPrefix(name, "a Windows image") {
				server = strings.Replace(server, "Ubuntu 24.04", "Windows Server 2022", 1)
			}
			d := newDesk(t, server)
			d.rewrite(t, row.from, row.to)
			code, out, errs := d.run(t, "check")
			if code != row.code || !strings.Contains(out+errs, row.says) {
				t.Errorf("exit code %d, want %d and %q:\n%s%s", code, row.code, row.says, out, errs)
			}
			if code != exitUsage && !strings.Contains(out, "not looked at") {
				t.Errorf("the output does not say what was not looked at:\n%s", out)
			}
		})
	}
}

// TestCheckGoesOn: one mistake does not hide what the rest is like.
func TestCheckGoesOn(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		server, from, to string
		code             int
		says             []string
	}{
		"a wrong flavor": {
			strings.Replace(goodServer, "m1.small", "m1.smal", 1), "", "", exitFailed,
			[]string{"ok authentication", "WRONG server.flavor", "ok server.image", "ok server.networks", "ok listing", "ok connector_config"},
		},
		"a key that is none": {
			goodServer + "flavour = \"x\"\nimage_name = \"x\"\n", "", "", exitFailed,
			[]string{"WRONG server.flavour is no setting; did you mean server.flavor?", "WRONG server.image_name", "ok authentication", "ok server.flavor", "ok listing"},
		},
		"a network that is none, and no address_network": {
			strings.Replace(goodServer, "[\"private\"]", "[\"private\", \"secnd\"]", 1), "", "", exitFailed,
			[]string{"WRONG address_network is required when", "ok server.networks private", "WRONG server.networks no network is named \"secnd\""},
		},
		"no such cloud, no such file": {
			goodServer + "user_data_file = \"/nowhere/user-data\"\n", "cloud = \"simulator-tiny\"", "cloud = \"nowhere\"", exitFailed,
			[]string{"WRONG cloud nowhere", "WRONG server.user_data_file open /nowhere/user-data", "ok connector_config"},
		},
		"no name": {
			goodServer, "\nname = \"runner\"\n", "\n", exitFailed, []string{"WRONG name is required", "ok server.flavor"},
		},
		"no such zone": {
			goodServer + "availability_zone = \"az-x\"\n", "", "", exitFailed,
			[]string{"WRONG server.availability_zone no availability zone is named \"az-x\"; did you mean \"az-a\", \"az-b\"?", "ok listing"},
		},
		"a zone": {goodServer + "availability_zone = \"az-b\"\n", "", "", exitOK, []string{"ok server.availability_zone az-b"}},
		"no such volume type": {
			goodServer + "volume_size = 5\nvolume_type = \"laab\"\n", "", "", exitFailed,
			[]string{"WRONG server.volume_type no volume type is named \"laab\" or has that ID; did you mean \"lab\"?"},
		},
		"a volume type": {goodServer + "volume_size = 5\nvolume_type = \"lab\"\n", "", "", exitOK, []string{"ok server.volume_type lab ("}},
		"an external network": {
			strings.Replace(goodServer, "private", "public", 1), "", "", exitOK, []string{"note server.networks public (", "is external and not shared"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, row.server)
			d.rewrite(t, row.from, row.to)
			code, out, errs := d.run(t, "check")
			said := strings.Join(strings.Fields(out), " ")
			if code != row.code {
				t.Errorf("exit code %d, want %d", code, row.code)
			}
			for _, part := range row.says {
				if !strings.Contains(said, part) {
					t.Errorf("it does not say %q:\n%s%s", part, out, errs)
				}
			}
		})
	}
}

// TestNoConfiguration: how to name one is said.
func TestNoConfiguration(t *testing.T) {
	t.Parallel()
	d := newDesk(t, goodServer)
	d.config += ".missing"
	if code, _, errs := d.run(t, "check"); code != exitUsage || !strings.Contains(errs, "with --config") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
