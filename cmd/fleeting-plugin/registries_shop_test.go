package main

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
	"github.com/radome-io/fleeting-plugin-openstack/internal/cli"
	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/plugintest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// shop has what the commands of TestRegistries begin with.
type shop struct {
	// dir holds dist and next, the executables of 1.0.0 and 1.1.0, windows for
	// package, the layout of 1.1.0, key.pem, key.pub, policy.toml, installed with
	// 1.0.0 in it, and mirror, a layout.
	dir string
	// stocks are registries by their names, see registryCommand, with "by tag"
	// behind it for those without a referrers API.
	stocks map[string]*registrytest.Snapshot
	// plain are the outcomes with registries that follow the specification.
	plain map[string]ran
}

// byTag is the behaviour by which the stocks without a referrers API are made.
const byTag = "the referrers API is not there: 404"

// The repository of the plugin, and how those who install call it.
const (
	demo     = "team/demo"
	demoName = "registry.test/" + demo
)

// registryCommand is a command that speaks to registries.
type registryCommand struct {
	name string
	// stock is what the registry holds: "two" released versions, "one", "one
	// without signatures", "one without aliases", or nothing.
	stock string
	// input is on standard input.
	input string
	// installed says that it begins with version 1.0.0 installed.
	installed bool
	// code is how it ends on a registry that follows the specification. rebuild
	// ends where it would read the source.
	code cli.Code
	args func(c cell) []string
}

// cell is one run of a command.
type cell struct {
	shop string // the shop's folder
	dir  string // one of its own
	host string
	b    registrytest.Behaviour
}

func (c cell) in(name string) string     { return filepath.Join(c.dir, name) }
func (c cell) ofShop(name string) string { return filepath.Join(c.shop, name) }

// direct and mirrored are flags for those who name the registry's own host, and
// those who have it for a mirror.
func (c cell) direct(args ...string) []string {
	args = append(args, "--registry-config", c.in("config.json"), "--output", "json")
	if strings.Contains(c.b.Name, "byte at a time") {
		args = append(args, "--stall-timeout", "100ms")
	}
	return args
}

func (c cell) mirrored(args ...string) []string {
	return c.direct(append(args, "--registry-mirror", "registry.test="+c.host, "--policy", c.ofShop("policy.toml"))...)
}

// installing are the flags of commands with a folder of plugins.
func (c cell) installing(args ...string) []string {
	return c.mirrored(append(args, "--platform", "linux/amd64", "--dir", c.in("plugins"))...)
}

func (c cell) publish(args ...string) []string {
	return c.direct(append(args, "--key", c.ofShop("key.pem"))...)
}

func registryCommands() []registryCommand {
	release := []string{"--no-run", "--no-checksums", "--quiet"}
	return []registryCommand{
		{name: "login", input: registrytest.Password + "\n", args: func(c cell) []string {
			return c.direct("login", c.host, "--username", registrytest.User, "--password-stdin")
		}},
		{name: "package", stock: "base", args: func(c cell) []string {
			return c.direct("package", "--platform", "windows/amd64="+c.ofShop("windows"), "--windows-base", c.host+"/windows/base:ltsc",
				"--version", "1.1.0", "--layout", c.in("layout"), "--no-run")
		}},
		{name: "push", stock: "one", args: func(c cell) []string { return c.direct("push", c.ofShop("layout"), c.host+"/"+demo) }},
		{name: "release", stock: "one", args: func(c cell) []string {
			return c.publish(append([]string{"release", c.ofShop("next"), c.host + "/" + demo + ":1.1.0"}, release...)...)
		}},
		{name: "sign", stock: "one without signatures", args: func(c cell) []string { return c.publish("sign", c.host+"/"+demo+":1.0.0") }},
		{name: "attest", stock: "one without signatures", args: func(c cell) []string {
			return c.publish("attest", c.host+"/"+demo+":1.0.0", "--provenance=false")
		}},
		{name: "promote", stock: "one without aliases", args: func(c cell) []string {
			return c.direct("promote", c.host+"/"+demo+":1.0.0", "--key", c.ofShop("key.pub"))
		}},
		{name: "inspect", stock: "two", args: func(c cell) []string { return c.direct("inspect", c.host+"/"+demo+":1.1.0") }},
		{name: "resolve", stock: "two", args: func(c cell) []string {
			return c.mirrored("resolve", demoName+":1", "--platform", "linux/amd64")
		}},
		{name: "verify", stock: "two", args: func(c cell) []string {
			return c.mirrored("verify", demoName+":1", "--platform", "linux/amd64")
		}},
		{name: "lock", stock: "two", args: func(c cell) []string {
			return c.installing("lock", demoName+":1", "--lock", c.in("lock"))
		}},
		{name: "install", stock: "two", args: func(c cell) []string { return c.installing("install", demoName+":1.0.0") }},
		{name: "upgrade", stock: "two", installed: true, args: func(c cell) []string { return c.installing("upgrade") }},
		{name: "outdated", stock: "two", installed: true, args: func(c cell) []string { return c.installing("outdated") }},
		{name: "mirror from it", stock: "two", args: func(c cell) []string { return c.mirrored("mirror", demoName+":1", "oci:"+c.in("copy")) }},
		{name: "mirror to it", args: func(c cell) []string {
			return c.direct("mirror", "--from", c.ofShop("mirror"), c.host+"/copies", "--policy", c.ofShop("policy.toml"))
		}},
		{name: "rebuild", stock: "two", code: cli.Usage, args: func(c cell) []string {
			return c.mirrored("rebuild", demoName+":1.1.0", "--source", c.in("nowhere"))
		}},
	}
}

// said is a line of standard error with --output json.
type said struct {
	Warning string   `json:"warning"`
	Error   string   `json:"error"`
	Hint    string   `json:"hint"`
	Code    cli.Code `json:"code"`
	Errors  []said   `json:"errors"`
}

// ran is what a run of a command left.
type ran struct {
	code     cli.Code
	host     string
	out      string
	warnings []string
	errors   []said
	errText  string
	// holds is what the registry holds after it.
	holds []string
}

// commandTimeout is for commands that hang.
const commandTimeout = 5 * time.Minute

// run runs a command in this process.
func (c cell) run(ctx context.Context, command registryCommand) ran {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	// Without a home folder, for the go command would go on writing there after the
	// command has ended.
	env := map[string]string{"FLEETING_PLUGIN_PATH": c.in("plugins"), "SOURCE_DATE_EPOCH": "1800000000"}
	app := cli.New(strings.NewReader(command.input), &out, &errs, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	app.RetryWait = time.Millisecond
	app.Now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	r := ran{host: c.host, code: app.Run(ctx, newTree(app), command.args(c)), errText: errs.String()} //nolint:contextcheck // commands get it from Run
	r.out, r.warnings = c.result(out.String(), command.name == "package")
	for line := range strings.Lines(r.errText) {
		var one said
		switch json.Unmarshal([]byte(line), &one) {
		case nil:
			if one.Warning != "" {
				r.warnings = append(r.warnings, c.neutral(one.Warning))
			} else {
				r.errors = append(r.errors, one)
			}
		default:
			r.errors = append(r.errors, said{Error: line})
		}
	}
	return r
}

// neutral takes out of a text what differs from run to run.
func (c cell) neutral(text string) string {
	quoted, _ := json.Marshal(c.dir)
	return strings.NewReplacer(c.host, "HOST", c.dir, "DIR", strings.Trim(string(quoted), `"`), "DIR").Replace(text)
}

// result is what a command wrote, apart from its warnings and from how it came to
// that: sentences, the tag by which a version was found, the format of the evidence
// that sufficed, and how much had to be uploaded. Registries list referrers in any
// order, which decides which of two bills of materials is found first, so the lines
// are sorted. What is packaged names the registry of its base.
func (c cell) result(out string, packaged bool) (text string, warnings []string) {
	how := regexp.MustCompile(`\."$|^"(tag|predicateType|format|blobs|bytes|uploaded)": `)
	var lines []string
	for line := range strings.Lines(c.neutral(out)) {
		line = strings.TrimSuffix(strings.TrimSpace(line), ",")
		switch {
		case strings.HasPrefix(line, `"message": `):
			warnings = append(warnings, line)
		case how.MatchString(line), packaged && strings.HasPrefix(line, `"digest": `):
		default:
			lines = append(lines, line+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ""), warnings
}

// prepare makes the folder of a cell.
func (s *shop) prepare(c cell, installed bool) error {
	config := fmt.Sprintf(`{"auths":{%q:{"username":%q,"password":%q}}}`, c.host, registrytest.User, registrytest.Password)
	if err := os.WriteFile(c.in("config.json"), []byte(config), 0o600); err != nil || !installed {
		return err
	}
	return os.CopyFS(c.in("plugins"), os.DirFS(c.ofShop("installed")))
}

// cell runs a command against a registry that behaves in some way, and checks the
// outcome as far as the table does not.
func (s *shop) cell(t *testing.T, command registryCommand, b registrytest.Behaviour) outcome {
	t.Helper()
	r, err := s.try(t, command, b)
	if err != nil {
		t.Errorf("%s: %v", command.name, err)
		return outcome{}
	}
	plain := s.plain[stockName(command, b)]
	o := outcome{code: r.code}
	if r.code == plain.code {
		o.code = cli.OK
	}
	extra := slices.DeleteFunc(slices.Clone(r.warnings), func(text string) bool { return slices.Contains(plain.warnings, text) })
	o.warns = len(extra) > 0
	if found := secrets.FindString(r.errText); found != "" {
		t.Errorf("%s: %q is in what it says:\n%s", command.name, found, r.errText)
	}
	switch {
	case o.code != cli.OK:
		if err := checkRefusal(b, o, r); err != nil {
			t.Errorf("%s: exit code %d: %v:\n%s", command.name, r.code, err, r.errText)
		}
	case o.warns:
		if r.code != plain.code {
			t.Errorf("%s: exit code %d with warnings:\n%s", command.name, r.code, r.errText)
		}
	default:
		if diff := cmp.Diff(plain.out, r.out); diff != "" {
			t.Errorf("%s: another result (-plain +seen):\n%s", command.name, diff)
		}
		if diff := cmp.Diff(plain.holds, r.holds); diff != "" {
			t.Errorf("%s: the registry holds something else (-plain +seen):\n%s", command.name, diff)
		}
	}
	return o
}

func stockName(command registryCommand, b registrytest.Behaviour) string {
	name := command.name
	if b.ByTag {
		name += " by tag"
	}
	return name
}

// try runs a command against a registry that behaves in some way.
func (s *shop) try(t *testing.T, command registryCommand, b registrytest.Behaviour) (ran, error) {
	t.Helper()
	stock := command.stock
	if b.ByTag && stock != "" {
		stock += " by tag"
	}
	from := s.stocks[stock]
	if from == nil {
		return ran{}, fmt.Errorf("no stock %q", stock)
	}
	reg := from.Start(t)
	if b.Name != "" {
		reg.Behave(t, b)
	}
	c := cell{shop: s.dir, dir: t.TempDir(), host: reg.Host, b: b}
	if err := s.prepare(c, command.installed); err != nil {
		return ran{}, err
	}
	r := c.run(t.Context(), command)
	r.holds = holds(reg)
	return r, nil
}

// holds says what a registry holds: where each tag points to, and how many
// referrers a manifest has. Signatures with a key differ from run to run, so of
// those and of what names them only the number of layers and entries is said.
func holds(reg *registrytest.Registry) []string {
	all := map[string]string{}
	for _, m := range reg.Manifests() {
		var document struct {
			Layers    []struct{}               `json:"layers"`
			Manifests []struct{}               `json:"manifests"`
			Subject   *struct{ Digest string } `json:"subject"`
		}
		_ = json.Unmarshal(m.Content, &document)
		what := fmt.Sprintf("%s:%s is %s", m.Repository, m.Reference, artifact.Describe(m.MediaType, m.Content).Digest)
		switch {
		case document.Subject != nil:
			what = "a referrer of " + document.Subject.Digest
		case strings.HasPrefix(m.Reference, "sha256-"):
			what = fmt.Sprintf("%s:%s has %d layers or manifests", m.Repository, m.Reference, len(document.Layers)+len(document.Manifests))
		case strings.HasPrefix(m.Reference, "sha256:"):
			continue // a tag names it
		}
		all[m.Repository+":"+m.Reference] = what
	}
	return slices.Sorted(maps.Values(all))
}

// newShop makes all that commands begin with, by means of the commands.
func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{dir: t.TempDir(), stocks: map[string]*registrytest.Snapshot{"": {}}, plain: map[string]ran{}}
	key := trusttest.NewKey(t)
	policy := "version = 1\n[[rule]]\nscope = \"registry.test/**\"\n[[rule.key]]\nfile = \"key.pub\"\n[[rule.attestation]]\ntype = \"sbom\"\n"
	for name, content := range map[string][]byte{
		"key.pem": key.PrivatePEM(t), "key.pub": key.PublicPEM(t), "policy.toml": []byte(policy),
		"dist/linux/amd64/plugin": executableELF("1.0.0"), "next/linux/amd64/plugin": executableELF("1.1.0"), "windows/plugin.exe": executablePE(),
	} {
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o600), os.Chmod(path, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for _, behaviours := range [][]registrytest.Behaviour{nil, {registrytest.Named(t, byTag)}} {
		s.stock(t, behaviours...)
	}
	for _, b := range []registrytest.Behaviour{{}, registrytest.Named(t, byTag)} {
		for _, c := range registryCommands() {
			r, err := s.try(t, c, b)
			if err != nil || r.code != c.code {
				t.Fatalf("%s: exit code %d, %v:\n%s", c.name, r.code, err, r.errText)
			}
			s.plain[stockName(c, b)] = r
		}
	}
	return s
}

// stock makes the registries, with a behaviour or none.
func (s *shop) stock(t *testing.T, behaviours ...registrytest.Behaviour) {
	t.Helper()
	suffix := ""
	if len(behaviours) > 0 {
		suffix = " by tag"
	}
	start := func() (*registrytest.Registry, cell) {
		reg := registrytest.NewReferrers(t)
		reg.Behave(t, behaviours...)
		c := cell{shop: s.dir, dir: t.TempDir(), host: reg.Host}
		if err := s.prepare(c, false); err != nil {
			t.Fatal(err)
		}
		return reg, c
	}
	do := func(c cell, args ...string) {
		r := c.run(t.Context(), registryCommand{args: func(cell) []string { return args }})
		if r.code != cli.OK {
			t.Fatalf("%q: exit code %d:\n%s", args, r.code, r.errText)
		}
	}
	release := func(c cell, dist, version string, more ...string) {
		do(c, append(c.direct("release", c.ofShop(dist), c.host+"/"+demo+":"+version, "--no-run", "--no-checksums"), more...)...)
	}
	reg, _ := start()
	base(t, reg)
	s.stocks["base"+suffix] = reg.Snapshot()

	reg, c := start()
	release(c, "dist", "1.0.0", "--insecure-unsigned")
	s.stocks["one without signatures"+suffix] = reg.Snapshot()

	reg, c = start()
	release(c, "dist", "1.0.0", "--key", c.ofShop("key.pem"), "--no-aliases")
	s.stocks["one without aliases"+suffix] = reg.Snapshot()

	reg, c = start()
	release(c, "dist", "1.0.0", "--key", c.ofShop("key.pem"))
	s.stocks["one"+suffix] = reg.Snapshot()
	if suffix == "" {
		do(c, c.mirrored("install", demoName+":1", "--platform", "linux/amd64", "--dir", c.ofShop("installed"))...)
		do(c, c.direct("package", c.ofShop("next"), "--version", "1.1.0", "--layout", c.ofShop("layout"), "--no-run")...)
	}
	release(c, "next", "1.1.0", "--key", c.ofShop("key.pem"))
	s.stocks["two"+suffix] = reg.Snapshot()
	if suffix == "" {
		do(c, c.mirrored("mirror", demoName+":1.0.0", "oci:"+c.ofShop("mirror"))...)
	}
}

// base publishes an image of Windows without content.
func base(t *testing.T, reg *registrytest.Registry) {
	t.Helper()
	client, err := ociregistry.NewClient(ociregistry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := client.Repository(reg.Host + "/windows/base")
	if err != nil {
		t.Fatal(err)
	}
	layer := plugintest.PushBlob(t, repo, ocispec.MediaTypeImageLayerGzip, plugintest.Gzip(t, plugintest.Tar(t, nil)))
	platform := &ocispec.Platform{OS: "windows", Architecture: "amd64", OSVersion: "10.0.20348.1"}
	config, err := json.Marshal(ocispec.Image{Platform: *platform, RootFS: ocispec.RootFS{Type: "layers", DiffIDs: nil}})
	if err != nil {
		t.Fatal(err)
	}
	config = bytes.Replace(config, []byte(`"diff_ids":null`), fmt.Appendf(nil, `"diff_ids":[%q]`, layer.Digest), 1)
	manifest := plugintest.PushJSON(t, repo, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: plugintest.PushBlob(t, repo, ocispec.MediaTypeImageConfig, config), Layers: []ocispec.Descriptor{layer},
	})
	manifest.Platform = platform
	plugintest.PushJSON(t, repo, ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{manifest},
	}, "ltsc")
}

// executableELF is the head of an executable for linux/amd64, and nothing that
// could be run.
func executableELF(version string) []byte {
	var b bytes.Buffer
	head := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Ehsize: 64}
	copy(head.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	_ = binary.Write(&b, binary.LittleEndian, head)
	b.WriteString("plugin " + version)
	return b.Bytes()
}

// executablePE is the same for windows/amd64.
func executablePE() []byte {
	b := make([]byte, 512)
	copy(b, "MZ")
	b[0x3c] = 0x80
	copy(b[0x80:], "PE\x00\x00\x64\x86")
	b[0x96] = 2 // an executable
	return b
}
