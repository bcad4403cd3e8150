package main

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/scratch"
)

// The handshake with which the runner starts a plugin: the cookie tells a plugin
// that a host started it. The values are those of fleeting's internal/plugin, the
// rest is go-plugin's, of which a client is not worth linking gRPC for:
// https://github.com/hashicorp/go-plugin/blob/main/docs/guide-plugin-write-non-go.md.
const (
	cookieName   = "FLEETING_INSTANCE_GROUP_PLUGIN"
	cookieValue  = "4c6410b1-cb78-4962-8c76-ab936d0ea908"
	startTimeout = 10 * time.Second
)

// startOnce starts a plugin as the runner does, but with an empty environment,
// and kills it once it has said where and how it serves.
func startOnce(ctx context.Context, path string) (protocol int, err error) {
	work, err := scratch.New()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir = filepath.Dir(path)
	cmd.Env = []string{
		"TMPDIR=" + work.Dir, cookieName + "=" + cookieValue,
		"PLUGIN_MIN_PORT=10000", "PLUGIN_MAX_PORT=25000", "PLUGIN_PROTOCOL_VERSIONS=0",
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	line, err := bufio.NewReader(io.LimitReader(stdout, 4096)).ReadString('\n')
	timedOut := ctx.Err() != nil
	cancel() // kills it
	waited := cmd.Wait()
	switch {
	case timedOut:
		return 0, fmt.Errorf("it did not announce its address within %s", startTimeout)
	case err != nil:
		return 0, fmt.Errorf("it ended without announcing its address (%w)", waited)
	}
	return readHandshake(line)
}

// readHandshake reads the line with which a plugin says how it serves:
// core version, protocol, network, address, kind of protocol, and more.
func readHandshake(line string) (protocol int, err error) {
	fields := strings.Split(strings.TrimSpace(line), "|")
	if len(fields) < 5 || fields[0] != "1" {
		return 0, fmt.Errorf("it wrote %.100q instead of a plugin's handshake", strings.TrimSpace(line))
	}
	if protocol, err = strconv.Atoi(fields[1]); err != nil || protocol != 0 {
		return 0, fmt.Errorf("it serves protocol %.20q, the runner speaks 0", fields[1])
	}
	if fields[4] != "grpc" {
		return 0, fmt.Errorf("it serves %.20q, the runner speaks grpc", fields[4])
	}
	return protocol, nil
}

// whyNotStarted explains what the system's "no such file or directory" and
// "exec format error" leave open about an executable that is there: which
// program it needs to be started with, or which machine it is for. It returns
// the next thing to try, "" if there is nothing to say.
func whyNotStarted(path string) (why, next string) {
	interpreter, machine, err := headOf(path)
	switch {
	case err != nil:
		return "", ""
	case machine != "" && machineHere() != "" && machine != machineHere():
		return fmt.Sprintf("it is built for %s, and this is %s", machine, machineHere()),
			"install the one for this machine: fleeting-plugin install --reinstall REF"
	case interpreter == "":
		return "", ""
	}
	if _, err := os.Stat(interpreter); !errors.Is(err, fs.ErrNotExist) {
		return "", ""
	}
	return fmt.Sprintf("%s, which it needs to start, is missing, so it was built for another C library", interpreter),
		"ask the publisher for one that is linked statically (CGO_ENABLED=0), or install that library"
}

// headOf reads what an executable says about itself: the program that starts it
// and, for ELF files, the machine it is for.
func headOf(path string) (interpreter, machine string, err error) {
	file, err := os.Open(path) // #nosec G304 -- an installed plugin
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	first, err := bufio.NewReader(io.LimitReader(file, 256)).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", "", err
	}
	if script, ok := bytes.CutPrefix(first, []byte("#!")); ok {
		fields := strings.Fields(string(script))
		if len(fields) == 0 {
			return "", "", nil
		}
		return fields[0], "", nil
	}
	executable, err := elf.NewFile(file)
	if err != nil {
		return "", "", nil // not an ELF file: nothing to say
	}
	for _, program := range executable.Progs {
		if program.Type != elf.PT_INTERP {
			continue
		}
		name, err := io.ReadAll(io.LimitReader(program.Open(), 4096))
		if err != nil {
			return "", "", err
		}
		interpreter = strings.TrimRight(string(name), "\x00")
	}
	return interpreter, strings.TrimPrefix(executable.Machine.String(), "EM_"), nil
}

// machineHere is this machine as ELF names it; "" for one that is not listed,
// about which nothing is said.
func machineHere() string {
	return map[string]string{
		"386": "386", "amd64": "X86_64", "arm": "ARM", "arm64": "AARCH64", "loong64": "LOONGARCH", "ppc64le": "PPC64",
		"riscv64": "RISCV", "s390x": "S390",
	}[runtime.GOARCH]
}
