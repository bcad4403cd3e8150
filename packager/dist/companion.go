package dist

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// private is a kind of file that is published only if the publisher asks for it
// by name, with [ScanOptions.Include]. Beside an executable it is a mistake more
// often than not, and everyone who can read the registry would have it.
type private struct {
	// kind completes "is …".
	kind string
	// names are whole names, endings and words are parts of one. All are in lower
	// case.
	names, endings, words []string
	// copies counts names with something behind them, too: "clouds.yaml.1",
	// "id_rsa (copy)".
	copies bool
}

func privateFiles() []private {
	return []private{
		{
			kind: "a private key or a store of keys by its name", copies: true,
			names:   []string{"id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_xmss", "ssh_host_rsa_key", "ssh_host_ecdsa_key", "ssh_host_ed25519_key"},
			endings: []string{".key", ".pem", ".p8", ".p12", ".pfx", ".pk8", ".jks", ".bks", ".keystore", ".kdb", ".kdbx", ".ppk", ".asc", ".gpg", ".pgp", ".age", ".agekey", ".jwk", ".jwks", ".ovpn", "_rsa", "_dsa", "_ecdsa", "_ed25519"},
		},
		{
			kind: "a file of credentials by its name", copies: true,
			names: []string{
				"netrc", "_netrc", "npmrc", "pypirc", "pgpass", "htpasswd", "shadow", "auth.json", "env",
				"clouds.yaml", "clouds.yml", "secure.yaml", "secure.yml", "openrc", "admin-openrc", "kubeconfig", "config.toml",
				"application_default_credentials.json", "terraform.rc", "accesskeys.csv", "wp-config.php",
			},
			endings: []string{".env", ".kubeconfig", "openrc.sh", ".openrc", ".tfstate", ".tfvars", ".tfvars.json", ".htpasswd", ".netrc", ".rdp", ".pgpass"},
			words:   []string{"secret", "secrets", "password", "passwords", "passwd", "passphrase", "credential", "credentials", "token", "tokens", "apikey", "kubeconfig", "tfstate", "serviceaccount"},
		},
		{
			kind:    "a leftover by its name",
			names:   []string{"core", "thumbs.db", "desktop.ini", "nohup.out"},
			endings: []string{"~", ".bak", ".old", ".orig", ".rej", ".swp", ".tmp", ".log", ".core", ".dump", ".dmp", ".pid", ".test", ".prof", ".out"},
		},
		{
			kind: "source code by its name",
			names: []string{
				"go.mod", "go.sum", "go.work", "go.work.sum", "makefile", "gnumakefile", "dockerfile", "containerfile", "cargo.toml", "cargo.lock",
				"package.json", "package-lock.json", "pom.xml", "build.gradle", "cmakelists.txt", "meson.build",
			},
			endings: []string{
				".go", ".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".m", ".s", ".asm", ".rs", ".zig", ".java", ".kt", ".scala",
				".swift", ".cs", ".fs", ".ts", ".tsx", ".jsx", ".mk", ".mod", ".patch", ".diff", ".tf", ".proto",
			},
		},
	}
}

// secretMarks are beginnings of lines, and parts of lines, that private keys and
// tokens have whatever their file is called.
var secretMarks = regexp.MustCompile(
	`(?m)^\s*-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----\s*$|^AGE-SECRET-KEY-1|^PuTTY-User-Key-File-` +
		`|"private_key"\s*:\s*"-----BEGIN|^\s*aws_secret_access_key\s*=|"auths"\s*:\s*\{` +
		`|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{22}|\bgl(pat|rt|dt|cbt|ptt|oas|agent)-[A-Za-z0-9_-]{20}` +
		`|\bAKIA[0-9A-Z]{16}\b|\bxox[abprs]-[A-Za-z0-9-]{10}`)

// secretSearch is how much of a companion is searched for them, in bytes. Longer
// files are data and libraries.
const secretSearch = 1 << 20

// privately says why a companion is not published unasked, "" if nothing speaks
// against it.
func privately(f File) (string, error) {
	name := strings.ToLower(f.name)
	if strings.HasPrefix(name, ".") {
		return "a hidden file", nil
	}
	for _, p := range privateFiles() {
		if p.is(name) {
			return p.kind, nil
		}
	}
	content, err := beginning(f.path, secretSearch)
	if err != nil {
		return "", err
	}
	content = searchable(content)
	if bytes.IndexByte(content, 0) < 0 && secretMarks.Match(content) {
		return "a file with a private key or a token in it", nil
	}
	return "", nil
}

// searchable returns what marks of secrets, which are ASCII, can be found in: text
// of Windows programs without its byte order mark and, if it is in UTF-16 or UTF-32,
// without the zero bytes.
func searchable(content []byte) []byte {
	text := bytes.TrimPrefix(content, []byte("\xef\xbb\xbf"))
	wide := bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff})
	if wide {
		text = text[2:]
	}
	if at := bytes.IndexByte(text, 0); wide || at >= 0 && at < 2 {
		text = bytes.ReplaceAll(text, []byte{0}, nil)
		text = bytes.TrimPrefix(text, []byte{0xfe, 0xff}) // of UTF-32
	}
	return text
}

// is says whether a name, in lower case, is one of the kind. Public halves of
// keys are not.
func (p private) is(name string) bool {
	if strings.HasSuffix(name, ".pub") {
		return false
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return slices.ContainsFunc(p.names, func(n string) bool {
		more, found := strings.CutPrefix(name, n)
		return found && (more == "" || p.copies && strings.ContainsAny(more[:1], ". (-_"))
	}) ||
		slices.ContainsFunc(p.endings, func(e string) bool { return strings.HasSuffix(name, e) }) ||
		slices.ContainsFunc(words, func(w string) bool { return slices.Contains(p.words, w) })
}

// beginning returns the first bytes of a file, at most limit.
func beginning(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &InputError{Path: path, Problem: "cannot be read", Err: errors.Unwrap(err)}
	}
	defer f.Close() //nolint:errcheck // read only
	return io.ReadAll(io.LimitReader(f, limit))
}

// refusePrivate refuses the companions of an executable that look private, but
// those that the publisher asked for by name.
func refusePrivate(in Input, include []string) error {
	var problems []error
	for _, f := range in.files {
		if f == in.Executable() || slices.Contains(include, f.name) {
			continue
		}
		kind, err := privately(f)
		if kind != "" {
			err = &InputError{
				Path: f.path, Problem: "would be published, and is " + kind,
				Remedy: "remove it from the folder, or publish it with --include '" + strings.ReplaceAll(f.name, "'", `'\''`) + "'",
			}
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
