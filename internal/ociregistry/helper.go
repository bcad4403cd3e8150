package ociregistry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	helperPrefix     = "docker-credential-"
	helperCharacters = "-_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	// helperOutput bounds what a helper may answer, in bytes.
	helperOutput = 64 << 10
	// tokenUser stands in a helper's answer for an identity token.
	tokenUser = "<token>"
)

// HelperError is a credential helper that could not be asked, or did not answer.
// It wraps [ErrHelper].
type HelperError struct {
	// Program is docker-credential-NAME.
	Program string
	// Config and Key are the file or variable that names it, and where in it.
	Config, Key string
	// Missing says that the program is not there.
	Missing bool
	// Problem says what is wrong.
	Problem string
}

// Error names the program and who asked for it.
func (e *HelperError) Error() string {
	return fmt.Sprintf("%s, which %s names (%s), %s", e.Program, e.Config, e.Key, e.Problem)
}

// Unwrap returns [ErrHelper].
func (*HelperError) Unwrap() error { return ErrHelper }

// helper is a program that keeps credentials: docker-credential-NAME in PATH.
// https://github.com/docker/docker-credential-helpers#development
type helper struct {
	// name is the end of the program's name; config and key are where it stands.
	name, config, key string
}

type helperAnswer struct {
	ServerURL string
	Username  string
	Secret    string
}

func (h helper) get(ctx context.Context, server string, timeout time.Duration) (Credential, error) {
	out, err := h.run(ctx, "get", []byte(server), timeout)
	if err != nil || out == nil {
		return Credential{}, err
	}
	var answer helperAnswer
	if json.Unmarshal(out, &answer) != nil {
		return Credential{}, h.failed("did not answer with JSON")
	}
	if answer.Username == tokenUser {
		return Credential{IdentityToken: answer.Secret}, nil
	}
	return Credential{Username: answer.Username, Password: answer.Secret}, nil
}

func (h helper) store(ctx context.Context, server string, c Credential, timeout time.Duration) error {
	entry := helperAnswer{ServerURL: server, Username: c.Username, Secret: c.Password}
	if c.IdentityToken != "" {
		entry.Username, entry.Secret = tokenUser, c.IdentityToken
	}
	in, err := json.Marshal(entry) //nolint:gosec // the helper is given the secret to keep
	if err != nil {
		return err
	}
	_, err = h.run(ctx, "store", in, timeout)
	return err
}

func (h helper) erase(ctx context.Context, server string, timeout time.Duration) error {
	_, err := h.run(ctx, "erase", []byte(server), timeout)
	return err
}

// run runs the helper; its output is nil if it has no credential. One that fails
// is an error, not a lack of credentials: what is private would look as if it were
// not there.
func (h helper) run(ctx context.Context, action string, in []byte, timeout time.Duration) ([]byte, error) {
	if h.name == "" || strings.Trim(h.name, helperCharacters) != "" {
		// A path would start a program from wherever it leads to.
		return nil, fmt.Errorf("%w: %s: %s is %q, which is more than the end of a program's name", ErrConfig, h.config, h.key, h.name)
	}
	program, err := exec.LookPath(helperPrefix + h.name)
	if err != nil {
		e := h.failed("is not installed: it is not in PATH")
		e.Missing = true
		return nil, e
	}
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(within, program, action) // #nosec G204 -- a name in PATH, checked above
	cmd.WaitDelay = time.Second                         // for what it started, which may hold the pipes
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &cappedBuffer{to: &stdout}, &cappedBuffer{to: &stderr}
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		// In the second case it has ended well, and left a program behind that holds
		// its output, such as an agent.
		return append([]byte{}, stdout.Bytes()...), nil
	case within.Err() != nil:
		return nil, h.failed(fmt.Sprintf("did not answer within %s", timeout))
	}
	// Helpers write on standard output why they failed; one that writes a secret
	// there and then fails is not repeated.
	said := line(stdout.String())
	if strings.Contains(said, "{") {
		said = ""
	}
	if action == "get" && strings.Contains(strings.ToLower(said), "credentials not found") {
		return nil, nil
	}
	if said == "" {
		said = line(stderr.String())
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, h.failed(strings.TrimSuffix(fmt.Sprintf("failed (%s): %s", exit.ProcessState, said), ": "))
	}
	return nil, h.failed(fmt.Sprintf("could not be run: %v", err))
}

func (h helper) failed(problem string) *HelperError {
	return &HelperError{Program: helperPrefix + h.name, Config: h.config, Key: h.key, Problem: problem}
}

// cappedBuffer keeps the beginning of what is written.
type cappedBuffer struct{ to *bytes.Buffer }

func (b *cappedBuffer) Write(p []byte) (int, error) {
	b.to.Write(p[:min(len(p), helperOutput-b.to.Len())])
	return len(p), nil
}
