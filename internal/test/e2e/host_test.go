//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// oneStep bounds a single command. Emulated processors are slow, and so are
// machines that others use.
const oneStep = 10 * time.Minute

// run runs a program to its end and returns its standard output.
func run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	stdout, all, err := try(t, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, all)
	}
	return stdout
}

// try is run for programs that may fail; all is both of its outputs.
func try(t *testing.T, env []string, name string, args ...string) (stdout, all string, err error) {
	t.Helper()
	mustGoOn(t)
	ctx, cancel := stepContext(t, oneStep)
	defer cancel()
	cmd := command(ctx, env, name, args...)
	var out, both bytes.Buffer
	var mu sync.Mutex
	cmd.Stdout, cmd.Stderr = &shared{&mu, []*bytes.Buffer{&out, &both}}, &shared{&mu, []*bytes.Buffer{&both}}
	err = cmd.Run()
	return out.String(), both.String(), err
}

// quiet runs a program after a test has ended.
func quiet(env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), oneStep)
	defer cancel()
	out, err := command(ctx, env, name, args...).CombinedOutput()
	return string(out), err
}

// shared writes to buffers that other goroutines write to as well.
type shared struct {
	mu *sync.Mutex
	to []*bytes.Buffer
}

func (w *shared) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, buffer := range w.to {
		buffer.Write(p)
	}
	return len(p), nil
}

// install brings the Debian packages that are missing.
func install(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("containers, packages and binfmt_misc need root")
	}
	start := time.Now()
	if out := run(t, nil, "./install.sh"); out != "" {
		t.Logf("%s(%.0f s)", out, time.Since(start).Seconds())
	}
}

// emulate has the kernel start arm64 programs through qemu. Debian's package
// registers nothing where systemd does not run.
func emulate(t *testing.T) {
	t.Helper()
	const registry, entry = "/proc/sys/fs/binfmt_misc", "/proc/sys/fs/binfmt_misc/qemu-aarch64"
	if _, err := os.Stat(registry + "/register"); err != nil {
		run(t, nil, "mount", "-t", "binfmt_misc", "binfmt_misc", registry)
		t.Cleanup(func() {
			if err := unmount(registry); err != nil {
				t.Errorf("unmounting %s: %v", registry, err)
			}
		})
	}
	if _, err := os.Stat(entry); err == nil {
		return
	}
	rule, err := os.ReadFile("/usr/lib/binfmt.d/qemu-aarch64.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(registry+"/register", rule, 0o200); err != nil {
		t.Fatalf("registering qemu: %v", err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(entry, []byte("-1"), 0o200); err != nil {
			t.Errorf("unregistering qemu: %v", err)
		}
	})
}

// version is the first line that a program says of itself, without its name.
func version(t *testing.T, name string, args ...string) string {
	t.Helper()
	line, _, _ := strings.Cut(run(t, nil, name, args...), "\n")
	for word := range strings.FieldsSeq(line) {
		word = strings.TrimPrefix(word, "v")
		if word[0] >= '0' && word[0] <= '9' {
			return strings.TrimSuffix(word, ",")
		}
	}
	return line
}
