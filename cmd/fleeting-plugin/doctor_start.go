package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

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
	return fmt.Sprintf("it is there, but %s, which it is started with, is not; so it was built for another C library", interpreter),
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
