package installer_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/radome-io/fleeting-plugin-openstack/installer"
)

// A program such as the runner needs these lines to install a verified plugin
// and to find it again. Without a rule for it in the policy the plugin is
// refused, and the error says what to add.
func Example() {
	folder, err := os.MkdirTemp("", "plugins-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()

	policy, err := installer.ParsePolicy([]byte("version = 1\n"), os.ReadFile)
	if err != nil {
		fmt.Println(err)
		return
	}
	i, err := installer.New(policy, installer.WithFolder(folder))
	if err != nil {
		fmt.Println(err)
		return
	}
	ref, err := installer.ParseReference("registry.example.com/team/plugin:1.2")
	if err != nil {
		fmt.Println(err)
		return
	}
	installed, err := i.Ensure(context.Background(), ref, installer.InstallOptions{})
	if missing, ok := errors.AsType[*installer.NoRuleError](err); ok {
		fmt.Print("add to policy.toml:\n", missing.Suggestion())
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("start", installed.Path)
	// Output:
	// add to policy.toml:
	// [[rule]]
	// scope = "registry.example.com/team/plugin"
	//
	// [[rule.key]]
	// file = "cosign.pub"  # the publisher's public key, beside the policy
}

// The kind of an error says what to do, its reasons say why.
func ExampleReasons() {
	i, err := installer.New(installer.Policy{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ref, err := installer.ParseReference("registry.example.com/team/plugin:1.2")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = i.Verify(context.Background(), ref)
	if errors.Is(err, installer.ErrRefused) {
		fmt.Println("not allowed:", installer.Reasons(err))
	}
	if errors.Is(err, installer.Reason("no-rule")) {
		fmt.Println("add a rule to the policy")
	}
	// Output:
	// not allowed: [no-rule]
	// add a rule to the policy
}

// A policy can be written in code. Here two of three maintainers must have signed.
func ExampleNewPolicy() {
	var maintainers []installer.Signer
	for range 3 {
		signer, err := installer.RequireKey(newPublicKey(), installer.KeyOptions{})
		if err != nil {
			fmt.Println(err)
			return
		}
		maintainers = append(maintainers, signer)
	}
	policy, err := installer.NewPolicy(installer.Rule{
		Scope:     "registry.example.com/team/**",
		Signers:   maintainers,
		Threshold: 2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rule := range policy.Rules() {
		fmt.Println(rule.Scope, "needs", rule.Threshold, "of", len(rule.Signers))
	}
	// Output: registry.example.com/team/** needs 2 of 3
}

// newPublicKey stands for reading a maintainer's cosign.pub.
func newPublicKey() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// The plugins that a runner's configuration names, each once.
func ExampleParseRunnerConfig() {
	plugins, err := installer.ParseRunnerConfig([]byte(`
[[runners]]
  name = "linux"
  [runners.autoscaler]
    plugin = "registry.example.com/team/plugin:~1.4"
[[runners]]
  name = "windows"
  [runners.autoscaler]
    plugin = "registry.example.com/team/plugin:~1.4"
[[runners]]
  name = "local"
  [runners.autoscaler]
    plugin = "fleeting-plugin-local"
`))
	fmt.Println(installer.References(plugins), err)
	// Output: [registry.example.com/team/plugin:~1.4] <nil>
}

// Where plugins are, without asking the environment behind the caller's back.
func ExampleDefaultFolder() {
	environment := map[string]string{"FLEETING_PLUGIN_PATH": "/opt/plugins"}
	dir, err := installer.DefaultFolder(func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	})
	fmt.Println(dir, err)
	// Output: /opt/plugins <nil>
}

// emptySource is a registry without anything in it.
type emptySource struct{}

func (emptySource) Tags(context.Context) ([]string, error) { return nil, nil }

func (emptySource) Resolve(context.Context, string) (ocispec.Descriptor, error) {
	return ocispec.Descriptor{}, installer.ErrNotFound
}

func (emptySource) Fetch(context.Context, ocispec.Descriptor) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(nil)), installer.ErrNotFound
}

func (emptySource) FetchAll(context.Context, ocispec.Descriptor, int64) ([]byte, error) {
	return nil, installer.ErrNotFound
}

func (emptySource) Referrers(context.Context, ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	return nil, nil
}

// Plugins may come from anywhere that can be read like a repository.
func ExampleWithSource() {
	source := func(context.Context, installer.Reference) (installer.Source, error) { return emptySource{}, nil }
	i, err := installer.New(installer.UnsafeNoVerification(), installer.WithSource(source))
	if err != nil {
		fmt.Println(err)
		return
	}
	ref, err := installer.ParseReference("registry.example.com/team/plugin:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = i.Resolve(context.Background(), ref)
	fmt.Println(errors.Is(err, installer.ErrNotFound))
	// Output: true
}
