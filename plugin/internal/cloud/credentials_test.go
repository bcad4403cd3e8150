package cloud

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"
)

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

// write makes files in a folder of their own and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func load(t *testing.T, clouds string, variables map[string]string) (credentials, error) {
	t.Helper()
	folder := write(t, map[string]string{"clouds.yaml": clouds})
	creds, _, err := loadCredentials(Options{Cloud: "c", CloudsFile: filepath.Join(folder, "clouds.yaml"), LookupEnv: environment(variables)})
	return creds, err
}

const passwordCloud = `
clouds:
  c:
    auth: {auth_url: "https://k/v3", username: u, password: hunter2, project_name: p, user_domain_name: D, project_domain_name: E}
    region_name: R1
    interface: internal
`

func TestPasswordCredentials(t *testing.T) {
	t.Parallel()
	creds, err := load(t, passwordCloud, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := gophercloud.AuthOptions{
		IdentityEndpoint: "https://k/v3", Username: "u", Password: "hunter2", DomainName: "D",
		Scope: &gophercloud.AuthScope{ProjectName: "p", DomainName: "E"},
	}
	if diff := cmp.Diff(want, creds.auth); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if creds.region != "R1" || creds.iface != "internal" {
		t.Errorf("region %q, interface %q", creds.region, creds.iface)
	}
}

func TestEnvironmentOverridesRegionAndInterface(t *testing.T) {
	t.Parallel()
	creds, err := load(t, passwordCloud, map[string]string{"OS_REGION_NAME": "R2", "OS_INTERFACE": "publicURL", "OS_PASSWORD": "other"})
	if err != nil {
		t.Fatal(err)
	}
	if creds.region != "R2" || creds.iface != "public" || creds.auth.Password != "hunter2" {
		t.Errorf("region %q, interface %q; the environment overrides these two only", creds.region, creds.iface)
	}
}

func TestApplicationCredentialHasNoScope(t *testing.T) {
	t.Parallel()
	creds, err := load(t, `
clouds:
  c:
    auth_type: v3applicationcredential
    auth: {auth_url: "https://k/v3", application_credential_id: i, application_credential_secret: hunter2, project_name: p}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := gophercloud.AuthOptions{IdentityEndpoint: "https://k/v3", ApplicationCredentialID: "i", ApplicationCredentialSecret: "hunter2"}
	if diff := cmp.Diff(want, creds.auth); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

// TestIncompleteCloudsFiles: each mistake is an error that names it, none is a
// panic, and none quotes a secret.
func TestIncompleteCloudsFiles(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ clouds, says string }{
		"empty":                 {"", `no "clouds"`},
		"no YAML":               {"clouds: [", "not valid YAML"},
		"a list":                {"clouds: []", "is no section"},
		"an entry of text":      {"clouds: {c: x}", "clouds.c is no section"},
		"verify in words":       {"clouds: {c: {auth: {}, verify: perhaps}}", "verify takes true or false"},
		"another cloud":         {"clouds: {d: {}}", `no cloud "c"; it has: d`},
		"no auth":               {"clouds: {c: {region_name: R}}", "no auth section"},
		"null entry":            {"clouds: {c: }", "no auth section"},
		"auth of a wrong type":  {"clouds: {c: {auth: hunter2}}", "wrong type"},
		"no auth_url":           {"clouds: {c: {auth: {username: u, password: hunter2}}}", "auth.auth_url is missing"},
		"no password":           {"clouds: {c: {auth: {auth_url: u, username: u, project_id: p}}}", "auth.password is missing"},
		"no project":            {"clouds: {c: {auth: {auth_url: u, username: u, password: hunter2}}}", "auth.project_name"},
		"no user":               {"clouds: {c: {auth: {auth_url: u, password: hunter2, project_id: p}}}", "auth.username"},
		"no secret":             {"clouds: {c: {auth_type: v3applicationcredential, auth: {auth_url: u, application_credential_id: i}}}", "application_credential_secret"},
		"another auth_type":     {"clouds: {c: {auth_type: v3oidcpassword, auth: {auth_url: u, password: hunter2}}}", "v3oidcpassword"},
		"another interface":     {"clouds: {c: {interface: pubic, auth: {auth_url: u, username: u, password: hunter2, project_id: p}}}", "pubic"},
		"several regions":       {"clouds: {c: {regions: [a, {name: b}], auth: {auth_url: u, username: u, password: hunter2, project_id: p}}}", "several regions"},
		"an unknown profile":    {"clouds: {c: {profile: vexxhost, auth: {username: u, password: hunter2}}}", "vexxhost"},
		"a password of a type":  {"clouds: {c: {auth: {auth_url: u, password: {hunter2: hunter2}}}}", "wrong type"},
		"a key that is a list":  {"clouds: {c: {auth: {auth_url: [hunter2]}}}", "wrong type"},
		"everything is missing": {"clouds: {c: {auth: {auth_url: u}}}", "auth.password is missing"},
	} {
		_, err := load(t, row.clouds, nil)
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v, want an error that says %q", name, err, row.says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes a secret: %v", name, err)
		}
	}
}

func TestSecureYAMLAndProfiles(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{
		"clouds.yaml":        "clouds: {c: {profile: v, auth: {username: u, project_id: p}}}",
		"secure.yaml":        "clouds: {c: {auth: {password: hunter2}}}",
		"clouds-public.yaml": "public-clouds: {v: {auth: {auth_url: 'https://vendor/v3'}, region_name: R}}",
	})
	creds, _, err := loadCredentials(Options{Cloud: "c", CloudsFile: filepath.Join(folder, "clouds.yaml"), LookupEnv: environment(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if creds.auth.Password != "hunter2" || creds.auth.IdentityEndpoint != "https://vendor/v3" || creds.region != "R" {
		t.Errorf("not merged: endpoint %q, region %q", creds.auth.IdentityEndpoint, creds.region)
	}
}

func TestStandardPlaces(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, folder := range []string{"named", ".config/openstack", "xdg/openstack"} {
		if err := os.MkdirAll(filepath.Join(home, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string {
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte("clouds: {}"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	named, config, xdg := at("named/x.yaml"), at(".config/openstack/clouds.yml"), at("xdg/openstack/clouds.json")
	secure, others := at(".config/openstack/secure.yaml"), at("named/secret.yaml")
	user := func(more ...string) map[string]string {
		variables := map[string]string{"HOME": home, "USERPROFILE": home}
		for i := 0; i < len(more); i += 2 {
			variables[more[i]] = more[i+1]
		}
		return variables
	}
	rows := map[string]struct {
		env          map[string]string
		path         string
		want, secure string
	}{
		"a path":                  {user(), named, named, ""},
		"a path from home":        {user(), "~/named/x.yaml", named, ""},
		"named":                   {user("OS_CLIENT_CONFIG_FILE", named), "", named, secure},
		"named, with its secrets": {user("OS_CLIENT_CONFIG_FILE", named, "OS_CLIENT_SECURE_FILE", others), "", named, others},
		"home":                    {user(), "", config, secure},
		"home, secrets elsewhere": {user("OS_CLIENT_SECURE_FILE", "~/named/secret.yaml"), "", config, others},
	}
	if runtime.GOOS != "windows" { // which has no such folders
		rows["xdg"] = rows["home"]
		row := rows["xdg"]
		row.env, row.want, row.secure = user("XDG_CONFIG_HOME", filepath.Join(home, "xdg")), xdg, ""
		rows["xdg"] = row
	}
	for name, row := range rows {
		files, err := findClouds(row.path, environment(row.env))
		if err != nil || !samePath(files.clouds, row.want) || !samePath(files.secure, row.secure) {
			t.Errorf("%s: got %s and %s, %v; want %s and %s", name, files.clouds, files.secure, err, row.want, row.secure)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		env        map[string]string
		path, says string
	}{
		"missing":          {nil, filepath.Join(home, "missing.yaml"), "missing.yaml"},
		"missing, named":   {user("OS_CLIENT_CONFIG_FILE", filepath.Join(home, "nowhere.yaml")), "", "none at " + filepath.Join(home, "nowhere.yaml")},
		"missing, secrets": {user("OS_CLIENT_SECURE_FILE", "nowhere/s.yaml"), named, "none at nowhere/s.yaml, which OS_CLIENT_SECURE_FILE names"},
		"relative":         {nil, "missing/clouds.yaml", filepath.Join(here, "missing", "clouds.yaml")},
	} {
		if _, err := findClouds(row.path, environment(row.env)); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v, want %q", name, err, row.says)
		}
	}
}

// samePath compares paths whichever way their slashes lean.
func samePath(a, b string) bool { return filepath.ToSlash(a) == filepath.ToSlash(b) }

func TestTLSFiles(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{"empty.pem": ""})
	for name, row := range map[string]struct {
		files tlsFiles
		says  string
	}{
		"missing CA":        {tlsFiles{ca: filepath.Join(folder, "no.pem")}, "cacert"},
		"CA without certs":  {tlsFiles{ca: filepath.Join(folder, "empty.pem")}, "no certificate"},
		"key without cert":  {tlsFiles{key: "a"}, "which is missing"},
		"a folder for a CA": {tlsFiles{ca: folder}, "is not a file"},
		"bad pair":          {tlsFiles{cert: filepath.Join(folder, "empty.pem"), key: filepath.Join(folder, "empty.pem")}, "cert"},
	} {
		if _, err := row.files.config(); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: got %v, want %q", name, err, row.says)
		}
	}
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, content := range map[string]string{
		"plain": authority, "a byte order mark": "\xef\xbb\xbf" + authority, "a comment in a code page": "# M\xfcnchen\r\n" + authority,
	} {
		folder := write(t, map[string]string{"ca.pem": content})
		config, err := tlsFiles{ca: filepath.Join(folder, "ca.pem")}.config()
		if err != nil || len(config.RootCAs.Subjects()) != 1 { //nolint:staticcheck // not of the system
			t.Errorf("%s: %v", name, err)
		}
	}
	config, err := tlsFiles{insecure: true}.config()
	if err != nil || !config.InsecureSkipVerify {
		t.Errorf("verify: false is not honoured: %v", err)
	}
}

func FuzzCloudsYAML(f *testing.F) {
	f.Add([]byte(passwordCloud))
	f.Add([]byte("clouds: {c: {auth: {auth_url: u}}}"))
	f.Add([]byte("clouds: {c: &a {auth: *a}}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		clouds, err := parseClouds("clouds.yaml", "clouds", content)
		if err != nil {
			return
		}
		var m mistakes
		if creds := m.credentials(clouds["c"], environment(nil)); len(m.wrong) == 0 && creds.auth.IdentityEndpoint == "" {
			t.Errorf("accepted without auth_url")
		}
	})
}

// TestLiteralsStayText: what openstacksdk reads as text, an ID of digits with
// one e or a password of digits with leading zeros, is no number here either.
func TestLiteralsStayText(t *testing.T) {
	t.Parallel()
	creds, err := load(t, `
base: &base
  auth_url: https://k/v3
  user_domain_id: 00000000000000000000000000000007
clouds:
  c:
    auth:
      <<: *base
      username: 0123
      password: 0017
      project_id: 12345678901234567890123456789012
      project_domain_id: 1234567890e23456
    verify: false
    cacert: ""
    region_name: 1.10
    regions: [1.10]
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := gophercloud.AuthOptions{
		IdentityEndpoint: "https://k/v3", Username: "0123", Password: "0017", DomainID: "00000000000000000000000000000007",
		Scope: &gophercloud.AuthScope{ProjectID: "12345678901234567890123456789012"},
	}
	if diff := cmp.Diff(want, creds.auth); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	if creds.region != "1.10" || !creds.tls.insecure {
		t.Errorf("region %q, insecure %v", creds.region, creds.tls.insecure)
	}
}

// TestAliasesThatNeverEnd neither crash nor take for ever.
func TestAliasesThatNeverEnd(t *testing.T) {
	t.Parallel()
	bomb := "a0: &a0 [x, x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	for name, text := range map[string]string{
		"bomb":  bomb + "clouds: {c: {auth: *a30}}\n",
		"cycle": "clouds: &me\n  c: *me\n",
	} {
		if _, err := load(t, text, nil); err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestVerifyIsRead: a boolean stays one.
func TestVerifyIsRead(t *testing.T) {
	t.Parallel()
	for value, insecure := range map[string]bool{"true": false, "false": true, "null": false} {
		creds, err := load(t, passwordCloud+"    verify: "+value+"\n", nil)
		if err != nil || creds.tls.insecure != insecure {
			t.Errorf("verify: %s: insecure %v, %v", value, creds.tls.insecure, err)
		}
	}
}

// TestYAMLErrorsShowNoSecret: some of the YAML library's errors quote the text
// that they stumble over.
func TestYAMLErrorsShowNoSecret(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"*hunter2", "&hunter2", "!hunter2 x", "[hunter2", "{hunter2: &x", "\"hunter2", "'hunter2", "@hunter2", "%hunter2", "[hunter2]", "{hunter2: 1}", "x\n hunter2: 1", "x\n  hunter2: &hunter2 *hunter2"} {
		_, err := load(t, "clouds:\n  c:\n    auth: {}\n    auth_type: "+password+"\n    cacert: "+password+"\n", nil)
		if err == nil {
			t.Errorf("%q: no error", password)
		} else if strings.Contains(err.Error(), "hunter2") && !strings.Contains(err.Error(), "auth_type") {
			t.Errorf("%q is quoted: %v", password, err)
		}
		_, err = load(t, "clouds:\n  c:\n    auth:\n      auth_url: x\n      password: "+password+"\n", nil)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q is quoted: %v", password, err)
		}
	}
}

// TestWrittenWhileRead: credentials that are written while the files are being
// read are read the next time.
func TestWrittenWhileRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(write(t, map[string]string{"clouds.yaml": passwordCloud}), "clouds.yaml")
	writing := func(string) (string, bool) { // asked for between reading and returning
		if err := os.WriteFile(path, []byte(passwordCloud+"# new\n"), 0o600); err != nil {
			t.Error(err)
		}
		return "", false
	}
	_, files, err := loadCredentials(Options{Cloud: "c", CloudsFile: path, LookupEnv: writing})
	if err != nil {
		t.Fatal(err)
	}
	if files.read == files.stamp() {
		t.Error("what was written meanwhile counts as read")
	}
}
