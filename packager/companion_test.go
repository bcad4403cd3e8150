package packager_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
)

// withCompanion makes a dist folder with one file beside the executable.
func withCompanion(t *testing.T, name, content string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "linux/amd64/plugin"), elfFile(), 0o755)
	writeFile(t, filepath.Join(dir, "linux/amd64", name), []byte(content), 0o644)
	return dir
}

// TestPrivateCompanions: what looks private is published only if it is asked for
// by name.
func TestPrivateCompanions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind  string
		files map[string]string
	}{
		{"a hidden file", called(".env", ".npmrc", ".netrc", ".git-credentials", ".DS_Store", ".hidden.yaml", ".vault-token", ".id_rsa.pub")},
		{"a private key or a store of keys", called(
			"cosign.key", "id_rsa", "id_ed25519", "ID_RSA", "id_rsa.bak", "id_ecdsa (copy)", "deploy_rsa", "server.pem", "Server.PEM", "store.p12",
			"passwords.kdbx", "putty.ppk", "secring.gpg", "site.jks", "AuthKey.p8", "age.agekey", "signing.jwk",
		)},
		{"a file of credentials", called(
			"secret.env", "prod.env", "env", "netrc", "credentials", "credentials.json", "my-credentials.yml", "clouds.yaml", "clouds.yaml.1", "secure.yml",
			"kubeconfig", "kubeconfig.yaml", "dev.kubeconfig", "admin-openrc", "demo-openrc.sh", "terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars",
			"secrets.yaml", "api_token.txt", "db-password", "config.toml", "application_default_credentials.json", "htpasswd", "auth.json",
		)},
		{"a leftover", called("core", "plugin~", "plugin.bak", "plugin.orig", "build.log", "heap.dump", "a.swp", "Thumbs.db")},
		{"source code", called("main.go", "go.mod", "go.sum", "Makefile", "Dockerfile", "helper.c", "lib.rs", "fix.patch", "main.tf")},
		{"a file with a private key or a token in it", map[string]string{
			"notes.txt":   "first\n-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n",
			"NOTES":       "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n",
			"ssh.txt":     "-----BEGIN OPENSSH PRIVATE KEY-----\r\nAAAA\r\n",
			"pgp.txt":     "-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
			"age.txt":     "# created\nAGE-SECRET-KEY-1QQQQ\n",
			"google.json": `{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\nAAAA"}`,
			"docker.json": `{"auths": {"registry.example.com": {"auth": "QQ=="}}}`,
			"aws.ini":     "[default]\naws_secret_access_key = AAAA\n",
			"marked.txt":  "\xef\xbb\xbf-----BEGIN PRIVATE KEY-----\r\nAAAA\r\n",
			"le.txt":      "\xff\xfe" + wide("-----BEGIN PRIVATE KEY-----\r\nAAAA\r\n", 1, 0),
			"be.txt":      "\xfe\xff" + wide("AGE-SECRET-KEY-1QQQQ\r\n", 0, 1),
			"le.json":     wide(`{"auths": {}}`, 1, 0),
			"be.ini":      wide("aws_secret_access_key = AAAA", 0, 1),
			"le32.txt":    "\xff\xfe\x00\x00" + wide("-----BEGIN PRIVATE KEY-----\n", 1, 0, 0, 0),
			"be32.txt":    "\x00\x00\xfe\xff" + wide("-----BEGIN PRIVATE KEY-----\n", 0, 0, 0, 1),
			"github.txt":  "ghp_" + strings.Repeat("a1", 18),
			"gitlab.yaml": "url: x\nruntime: glrt-" + strings.Repeat("a", 20),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			for name, content := range tt.files {
				dir := withCompanion(t, name, content)
				_, err := packager.Scan(t.Context(), dir, packager.ScanOptions{})
				found := problems(err)
				if len(found) != 1 || !strings.Contains(found[0].Problem, "is "+tt.kind) || found[0].Path != filepath.Join(dir, "linux/amd64", name) ||
					!strings.Contains(found[0].Remedy, "--include '"+name+"'") {
					t.Errorf("%s: error = %v", name, err)
				}
				dist, err := packager.Scan(t.Context(), dir, packager.ScanOptions{Include: []string{name}})
				if err != nil {
					t.Errorf("%s, asked for by name: %v", name, err)
					continue
				}
				_, packed := pack(t, "1.0.0", dist)
				if got := filesIn(packed.Platforms[0].Files); !slices.Contains(got, name) {
					t.Errorf("%s, asked for by name: the layer holds %v", name, got)
				}
			}
		})
	}
}

// wide is ASCII text in an encoding with several bytes for each character, of which
// the pattern says which one is not zero.
func wide(text string, pattern ...byte) string {
	var b strings.Builder
	for i := range len(text) {
		for _, one := range pattern {
			b.WriteByte(one * text[i])
		}
	}
	return b.String()
}

func called(all ...string) map[string]string {
	files := map[string]string{}
	for _, name := range all {
		files[name] = "x"
	}
	return files
}

// TestUsualCompanions are published unasked.
func TestUsualCompanions(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"plugin.yaml", "LICENSE", "NOTICE", "README.md", "ca.crt", "cosign.pub", "id_ed25519.pub", "libvirt.so.0", "core.so", "tokenizer.json",
		"data", "ä", "config.yaml", "config.json", "environment.json", "keyboard.txt", "helper",
	} {
		content := "text about a -----BEGIN PRIVATE KEY----- line\n-----BEGIN CERTIFICATE-----\n"
		if _, err := packager.Scan(t.Context(), withCompanion(t, name, content), packager.ScanOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIncludeOfNothing(t *testing.T) {
	t.Parallel()
	_, err := packager.Scan(t.Context(), withCompanion(t, "plugin.yaml", "x"), packager.ScanOptions{Include: []string{"clouds.yaml"}})
	if !errors.Is(err, packager.ErrInput) || !strings.Contains(err.Error(), "clouds.yaml: is to be included and is in no platform's folder") {
		t.Errorf("error = %v", err)
	}
}

func filesIn(files []packager.LayerFile) []string {
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// TestFilesAreListed: what is to be published, what would be and what is
// published show the same files, of every platform.
func TestFilesAreListed(t *testing.T) {
	t.Parallel()
	dir := writeDist(t, "1.0.0", "linux/amd64", "windows/amd64")
	writeFile(t, filepath.Join(dir, "linux/amd64/plugin.yaml"), []byte("a: b\n"), 0o644)
	writeFile(t, filepath.Join(dir, "windows/amd64/helper.exe"), []byte("MZ"), 0o755)
	dist := scan(t, dir)
	_, packed := pack(t, "1.0.0", dist)
	repo := repository(t, registrytest.NewReferrers(t).Host+"/demo")
	options := packager.ReleaseOptions{PackOptions: packager.PackOptions{Metadata: metadata(), SkipSBOM: true}, DryRun: true}
	planned, err := packager.Release(t.Context(), dist, version(t, "1.0.0"), repo, options)
	if err != nil {
		t.Fatal(err)
	}
	options.DryRun = false
	released, err := packager.Release(t.Context(), dist, version(t, "1.0.0"), repo, options)
	if err != nil {
		t.Fatal(err)
	}
	report, err := packager.Inspect(t.Context(), repo, "1.0.0", packager.InspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]map[string][]packager.LayerFile{"packed": {}, "planned": {}, "released": {}, "inspected": {}}
	for what, platforms := range map[string][]packager.PlatformResult{"packed": packed.Platforms, "planned": planned.Platforms, "released": released.Platforms} {
		for _, p := range platforms {
			lists[what][p.Platform] = p.Files
			if p.Files[len(p.Files)-1].Digest == "" {
				t.Errorf("%s, %s: no digest", what, p.Platform)
			}
		}
	}
	for _, p := range report.Platforms {
		lists["inspected"][p.Platform] = p.Files
	}
	for what, got := range lists {
		if diff := cmp.Diff(lists["packed"], got); diff != "" {
			t.Errorf("packed and %s (-packed +%s):\n%s", what, what, diff)
		}
	}
	if got := filesIn(lists["inspected"]["linux/amd64"]); !slices.Equal(got, []string{"plugin", "plugin.yaml"}) {
		t.Errorf("linux/amd64: %v", got)
	}
	if got := filesIn(lists["inspected"]["windows/amd64"]); !slices.Equal(got, []string{"helper.exe", "plugin.exe"}) {
		t.Errorf("windows/amd64: %v", got)
	}
	quick, err := packager.Inspect(t.Context(), repo, "1.0.0", packager.InspectOptions{SkipFiles: true})
	if err != nil || quick.Platforms[0].Files != nil {
		t.Errorf("without files: %v, %v", quick.Platforms[0].Files, err)
	}
}
