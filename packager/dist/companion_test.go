package dist_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// noCompanion says that only plugins are executable, for systems that do not tell.
var noCompanion = []string{""}

// withCompanion makes a dist folder with one file beside the executable.
func withCompanion(t *testing.T, name, content string) string {
	t.Helper()
	dir := t.TempDir()
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64/plugin"), sampleplugin.ELF(), 0o755)
	sampleplugin.Write(t, filepath.Join(dir, "linux/amd64", name), []byte(content), 0o644)
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
				_, err := dist.Scan(t.Context(), dir, dist.Options{Executables: noCompanion})
				found := problems(err)
				if len(found) != 1 || !strings.Contains(found[0].Problem, "is "+tt.kind) || found[0].Path != filepath.Join(dir, "linux/amd64", name) ||
					!strings.Contains(found[0].Remedy, "--include '"+name+"'") {
					t.Errorf("%s: error = %v", name, err)
				}
				included, err := dist.Scan(t.Context(), dir, dist.Options{Include: []string{name}, Executables: noCompanion})
				if err != nil {
					t.Errorf("%s, asked for by name: %v", name, err)
					continue
				}
				if !slices.ContainsFunc(included.Inputs()[0].Files(), func(f dist.File) bool { return f.Name() == name }) {
					t.Errorf("%s, asked for by name, is not among the files", name)
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
		if _, err := dist.Scan(t.Context(), withCompanion(t, name, content), dist.Options{Executables: noCompanion}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIncludeOfNothing(t *testing.T) {
	t.Parallel()
	_, err := dist.Scan(t.Context(), withCompanion(t, "plugin.yaml", "x"), dist.Options{Include: []string{"clouds.yaml"}})
	if !errors.Is(err, dist.ErrInput) || !strings.Contains(err.Error(), "clouds.yaml: is to be included and is in no platform's folder") {
		t.Errorf("error = %v", err)
	}
}
