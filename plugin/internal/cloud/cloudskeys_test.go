package cloud

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"
)

// TestAllMistakesAtOnce: an entry is checked like plugin_config, with the nearest
// key for each that is unknown, and quotes no value.
func TestAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		clouds string
		says   []string
	}{
		"typos in auth": {
			`{auth: {auth_ulr: "https://k", user_name: u, passwort: hunter2, projekt_name: p}}`,
			[]string{
				"8 mistakes", `"auth_ulr" is an unknown key of auth; did you mean auth.auth_url?`, `"user_name" is an unknown key of auth; did you mean auth.username?`,
				`"passwort" is an unknown key of auth; did you mean auth.password?`, `"projekt_name" is an unknown key of auth; did you mean auth.project_name?`,
				"auth.auth_url is missing", "auth.password is missing", "auth.username or auth.user_id is missing", "auth.project_name or auth.project_id is missing",
			},
		},
		"a value in the key":                    {`{auth: {auth_url: "https://k", username: u, "password:hunter2": , project_name: p}}`, []string{`"password" is an unknown key of auth`, "auth.password is missing"}},
		"keys beside auth":                      {`{username: u, password: hunter2, auth: {auth_url: "https://k", project_id: p}}`, []string{`"username" belongs into the section auth`, `"password" belongs into the section auth`}},
		"a token":                               {`{auth: {auth_url: "https://k", token: hunter2}}`, []string{"auth.token: a token ends, and cannot be renewed"}},
		"a one-time password":                   {`{auth: {auth_url: "https://k", username: u, password: hunter2, passcode: 123456, project_id: p}}`, []string{"auth.passcode: a one-time password"}},
		"a system":                              {`{auth: {auth_url: "https://k", username: u, password: hunter2, system_scope: all}}`, []string{"auth.system_scope: servers are made in a project"}},
		"two ways":                              {`{auth: {auth_url: "https://k", username: u, password: hunter2, project_id: p, application_credential_id: i, application_credential_secret: hunter2}}`, []string{"a password and an application credential; remove one of them, or set auth_type"}},
		"the other way":                         {`{auth_type: password, auth: {auth_url: "https://k", application_credential_id: i, application_credential_secret: hunter2}}`, []string{"set v3applicationcredential"}},
		"OpenID":                                {`{auth_type: v3oidcpassword, auth: {auth_url: "https://k", identity_provider: x, client_secret: hunter2}}`, []string{`auth_type "v3oidcpassword" is not supported; use password or v3applicationcredential`}},
		"a typo in auth_type, too":              {`{auth_type: Pasword, auth: {auth_url: "https://k", usrname: u, password: hunter2, project_id: p}}`, []string{"3 mistakes", `auth_type "Pasword" is not supported; did you mean password?`, "did you mean auth.username?"}},
		"short names":                           {`{auth: {auth_url: "https://k", user: u, password: hunter2, project: p, user_domain: d}}`, []string{"did you mean auth.username?", "did you mean auth.project_name?", "did you mean auth.user_domain_name?"}},
		"no blank behind a colon":               {`{auth: {auth_url: "https://k", username: u, password:hunter2, project_name: p}}`, []string{`"password" is an unknown key of auth; put a blank behind its colon`}},
		"Keystone v2":                           {`{identity_api_version: "2.0", auth: {auth_url: "https://k/v2.0", username: u, password: hunter2, tenant_name: p}}`, []string{`identity_api_version: must be 3, not "2.0"`}},
		"Glance v1":                             {`{image_api_version: 1, auth: {auth_url: "https://k", username: u, password: hunter2, project_id: p}}`, []string{`image_api_version: must be 2, not "1"`}},
		"no address":                            {`{auth: {auth_url: "keystone.example.com:5000/v3", username: u, password: hunter2, project_id: p}}`, []string{"auth.auth_url: its address has to begin with https://"}},
		"a password in it":                      {`{auth: {auth_url: "https://u:hunter2@k/v3", username: u, password: hunter2, project_id: p}}`, []string{"auth.auth_url: its address may not have a user or a password in it"}},
		"an override":                           {`{compute_endpoint_override: nova, auth: {auth_url: "https://k", username: u, password: hunter2, project_id: p}}`, []string{"compute_endpoint_override: its address has to begin"}},
		"an interface":                          {`{image_interface: privat, auth: {auth_url: "https://k", username: u, password: hunter2, project_id: p}}`, []string{`image_interface "privat" is none of public, internal and admin`}},
		"another region":                        {`{regions: [a, {name: b}], region_name: c, auth: {auth_url: "https://k", username: u, password: hunter2, project_id: p}}`, []string{`region_name: "c" is not among regions: a, b`}},
		"regions without name":                  {`{regions: [{values: {}}], auth: {auth_url: "https://k", username: u, password: hunter2, project_id: p}}`, []string{"regions: each must be a name"}},
		"a flag in words":                       {`{insecure: "maybe", auth: {auth_url: "https://k", username: u, password: hunter2, project_id: p}}`, []string{"insecure takes true or false, not text"}},
		"a password that YAML takes for a flag": {`{auth: {auth_url: "https://k", username: u, password: true, project_id: p}}`, []string{"auth.password takes text, not true or false"}},
	} {
		_, err := load(t, "clouds: {c: "+row.clouds+"}", nil)
		for _, part := range row.says {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want %q", name, err, part)
			}
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: shows a secret, or is more than a line: %v", name, err)
		}
	}
}

const goodAuth = `auth: {auth_url: "https://k", username: u, password: hunter2, project_id: p}`

// TestKeysOfOpenstacksdk that change where and how the plugin connects.
func TestKeysOfOpenstacksdk(t *testing.T) {
	t.Parallel()
	home := filepath.FromSlash("/home/u")
	for name, row := range map[string]struct {
		entry     string
		variables map[string]string
		got       func(credentials) any
		want      any
	}{
		"insecure":               {`insecure: true, verify: true`, nil, func(c credentials) any { return c.tls.insecure }, true},
		"not insecure":           {`insecure: false`, nil, func(c credentials) any { return c.tls.insecure }, false},
		"verify":                 {`verify: false`, nil, func(c credentials) any { return c.tls.insecure }, true},
		"paths from home":        {`cacert: ~/ca.pem, cert: ~/c.pem, key: "~/k.pem"`, nil, func(c credentials) any { return c.tls }, tlsFiles{ca: home + "/ca.pem", cert: home + "/c.pem", key: home + "/k.pem"}},
		"another user's home":    {`cacert: ~other/ca.pem`, nil, func(c credentials) any { return c.tls.ca }, "~other/ca.pem"},
		"an interface":           {`interface: internalURL`, nil, func(c credentials) any { return c.interfaceOf(compute) }, "internal"},
		"an interface, old name": {`endpoint_type: adminURL`, nil, func(c credentials) any { return c.interfaceOf(compute) }, "admin"},
		"an interface of a service": {
			`compute_interface: internal, volumev3_interface: admin, block_storage_interface: internal`, nil,
			func(c credentials) any { return c.interfaceOf(compute) + c.interfaceOf(image) + c.interfaceOf(volume) }, "internalpublicinternal",
		},
		"a region of a service":       {`region_name: R1, image_region_name: R2`, nil, func(c credentials) any { return c.region + c.regions[image] }, "R1R2"},
		"an endpoint, old name":       {`compute_endpoint: "https://n/v2.1"`, nil, func(c credentials) any { return c.overrides[compute] }, "https://n/v2.1"},
		"with dashes":                 {`region-name: R1, compute-endpoint-override: "https://n"`, nil, func(c credentials) any { return c.region + c.overrides[compute] }, "R1https://n"},
		"values of a region":          {`regions: [{name: a, values: {interface: admin}}, {name: b, values: {interface: internal}}], region_name: b`, nil, func(c credentials) any { return c.iface }, "internal"},
		"the only region":             {`regions: [{name: a, values: {interface: admin}}]`, nil, func(c credentials) any { return c.region + c.iface }, "aadmin"},
		"a region of the environment": {`regions: [a, {name: b, values: {interface: internal}}]`, map[string]string{"OS_REGION_NAME": "b"}, func(c credentials) any { return c.region + c.iface }, "binternal"},
		"a microversion":              {`compute_default_microversion: 2.79`, nil, func(c credentials) any { return c.version.String() }, "2.79"},
		"a version":                   {`identity_api_version: 3, compute_api_version: "2.1", volume_api_version: 3`, nil, func(c credentials) any { return c.iface }, "public"},
		"an old auth_type":            {`auth_plugin: v3password`, nil, func(c credentials) any { return c.auth.Password }, "hunter2"},
	} {
		variables := map[string]string{"HOME": home, "USERPROFILE": home}
		maps.Copy(variables, row.variables)
		creds, err := load(t, "clouds: {c: {"+row.entry+", "+goodAuth+"}}", variables)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(row.want, row.got(creds), cmp.AllowUnexported(tlsFiles{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(creds.remarks) != 0 {
			t.Errorf("%s: %q", name, creds.remarks)
		}
	}
}

// TestKeysWithoutEffect are named, and stop nothing.
func TestKeysWithoutEffect(t *testing.T) {
	t.Parallel()
	creds, err := load(t, "clouds: {c: {regoin_name: R1, networks: [], image_format: raw, x_ours: 1, compute_service_type: x, profile: nowhere, "+goodAuth+"}}", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`"regoin_name" is an unknown key; did you mean region_name?`, `"x_ours" is an unknown key`, "not used here: compute_service_type, image_format, networks", `profile "nowhere" is not in clouds-public.yaml beside it`}
	for _, part := range want {
		if !slices.ContainsFunc(creds.remarks, func(r string) bool { return strings.HasPrefix(r, part) }) {
			t.Errorf("remarks %q have no %q", creds.remarks, part)
		}
	}
}

// TestDomains: user and project each have one, by ID before name, and fall back to
// the one of both.
func TestDomains(t *testing.T) {
	t.Parallel()
	for auth, want := range map[string]gophercloud.AuthOptions{
		`username: u, password: x, project_name: p`: {
			Username: "u", DomainID: "default", Scope: &gophercloud.AuthScope{ProjectName: "p", DomainID: "default"},
		},
		`username: u, password: x, project_name: p, domain_name: D`: {
			Username: "u", DomainName: "D", Scope: &gophercloud.AuthScope{ProjectName: "p", DomainName: "D"},
		},
		`username: u, password: x, project_name: p, user_domain_name: U, user_domain_id: ui, project_domain_name: P`: {
			Username: "u", DomainID: "ui", Scope: &gophercloud.AuthScope{ProjectName: "p", DomainName: "P"},
		},
		`username: u, password: x, project_name: p, default_domain: dd`: {
			Username: "u", DomainID: "dd", Scope: &gophercloud.AuthScope{ProjectName: "p", DomainID: "dd"},
		},
		`username: u, password: x, project_name: p, default_domain_name: DN`: {
			Username: "u", DomainName: "DN", Scope: &gophercloud.AuthScope{ProjectName: "p", DomainName: "DN"},
		},
		`user_id: u, password: x, project_id: p, domain_name: D`: {UserID: "u", Scope: &gophercloud.AuthScope{ProjectID: "p"}},
		`username: u, password: x, trust_id: t`: {
			Username: "u", DomainID: "default", Scope: &gophercloud.AuthScope{TrustID: "t"},
		},
		`username: u, application_credential_name: n, application_credential_secret: x`: {
			Username: "u", DomainID: "default", ApplicationCredentialName: "n", ApplicationCredentialSecret: "x",
		},
	} {
		creds, err := load(t, `clouds: {c: {auth: {auth_url: "https://k", `+auth+`}}}`, nil)
		want.IdentityEndpoint = "https://k"
		if want.Scope != nil {
			want.Password = "x"
		}
		if diff := cmp.Diff(want, creds.auth); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", auth, err, diff)
		}
	}
}

// TestSecureFiles: the secrets may be beside clouds.yaml under each of its names,
// and may appear, or change, later.
func TestSecureFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"secure.yaml", "secure.yml", "secure.json"} {
		folder := write(t, map[string]string{"clouds.yml": `clouds: {c: {auth: {auth_url: "https://k", username: u, project_id: p}}}`})
		options := Options{Cloud: "c", CloudsFile: filepath.Join(folder, "clouds.yml"), LookupEnv: environment(nil)}
		_, files, err := loadCredentials(options)
		if err == nil || !strings.Contains(err.Error(), "auth.password is missing") {
			t.Errorf("%s: without it: %v", name, err)
		}
		before := files.stamp()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(`{"clouds": {"c": {"auth": {"password": "hunter2"}}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if files.stamp() == before {
			t.Errorf("%s: that it appeared is not seen", name)
		}
		if creds, _, err := loadCredentials(options); err != nil || creds.auth.Password != "hunter2" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLoginFromTheEnvironment: OS_* alone, where that is asked for, or where the
// cloud is called as openstacksdk calls it and there is no file.
func TestLoginFromTheEnvironment(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	openrc := map[string]string{
		"HOME": home, "USERPROFILE": home, "OS_AUTH_URL": "https://k:5000/v3", "OS_USERNAME": "u", "OS_PASSWORD": "hunter2", "OS_PROJECT_ID": "p1", "OS_PROJECT_NAME": "p",
		"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_ID": "default", "OS_REGION_NAME": "R1", "OS_INTERFACE": "internal",
		"OS_IDENTITY_API_VERSION": "3", "OS_CACERT": "~/ca.pem", "OS_INSECURE": "True", "OS_COMPUTE_API_VERSION": "2.1",
	}
	for name, options := range map[string]Options{"asked for": {FromEnv: true, Cloud: envCloud}, "by its name": {Cloud: envCloud}} {
		options.LookupEnv = environment(openrc)
		creds, files, err := loadCredentials(options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := gophercloud.AuthOptions{
			IdentityEndpoint: "https://k:5000/v3", Username: "u", Password: "hunter2", DomainName: "Default", Scope: &gophercloud.AuthScope{ProjectID: "p1"},
		}
		if diff := cmp.Diff(want, creds.auth); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if creds.region != "R1" || creds.iface != "internal" || !creds.tls.insecure || creds.tls.ca != home+"/ca.pem" || !strings.Contains(files.from, "OS_*") {
			t.Errorf("%s: %+v from %s", name, creds.tls, files.from)
		}
	}
	for name, row := range map[string]struct {
		variables map[string]string
		says      []string
	}{
		"nothing is set":  {nil, []string{"the environment (OS_*)", "OS_AUTH_URL is missing", "OS_USERNAME or OS_USER_ID is missing", "OS_PASSWORD is missing"}},
		"a token":         {map[string]string{"OS_AUTH_URL": "https://k", "OS_TOKEN": "hunter2"}, []string{"OS_TOKEN: a token ends"}},
		"a flag in words": {map[string]string{"OS_INSECURE": "perhaps"}, []string{"insecure takes true or false"}},
	} {
		_, _, err := loadCredentials(Options{FromEnv: true, Cloud: envCloud, LookupEnv: environment(row.variables)})
		for _, part := range row.says {
			if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: got %v, want %q", name, err, part)
			}
		}
	}
	_, _, err := loadCredentials(Options{Cloud: "other", LookupEnv: environment(openrc)})
	if err == nil || !strings.Contains(err.Error(), "clouds.yaml: none at") {
		t.Errorf("another cloud: got %v, want the missing file", err)
	}
}

// TestOneFileWithCertificateAndKey is what a lone cert means.
func TestOneFileWithCertificateAndKey(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ci"}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	both := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	folder := write(t, map[string]string{"both.pem": string(both)})
	config, err := tlsFiles{cert: filepath.Join(folder, "both.pem")}.config()
	if err != nil || len(config.Certificates) != 1 {
		t.Errorf("%v", err)
	}
}

// TestConfigFilesAreBounded: what is no file, or one without end, is not read.
func TestConfigFilesAreBounded(t *testing.T) {
	t.Parallel()
	folder := write(t, map[string]string{"long.yaml": strings.Repeat("#\n", configLimit), "mark.yaml": "\ufeffclouds: {c: {" + goodAuth + "}}", "wide.yaml": "c\x00l\x00"})
	unbounded := map[string]string{folder: "is not a file", filepath.Join(folder, "long.yaml"): "is longer than", filepath.Join(folder, "wide.yaml"): "UTF-16"}
	if runtime.GOOS != "windows" {
		unbounded["/dev/zero"] = "is not a file"
	}
	for path, says := range unbounded {
		_, _, err := loadCredentials(Options{Cloud: "c", CloudsFile: path, LookupEnv: environment(nil)})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", path, err, says)
		}
	}
	if _, _, err := loadCredentials(Options{Cloud: "c", CloudsFile: filepath.Join(folder, "mark.yaml"), LookupEnv: environment(nil)}); err != nil {
		t.Errorf("with a byte order mark: %v", err)
	}
}
