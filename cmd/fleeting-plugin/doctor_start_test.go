package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newELF makes the head of an executable for a machine, started with the
// interpreter unless that is empty.
func newELF(tb testing.TB, machine elf.Machine, interpreter string) []byte {
	tb.Helper()
	const headers = 64 + 56
	head := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	}
	copy(head.Ident[:], elf.ELFMAG)
	head.Ident[elf.EI_CLASS], head.Ident[elf.EI_DATA], head.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	program := elf.Prog64{Type: uint32(elf.PT_NULL)}
	if interpreter != "" {
		program = elf.Prog64{Type: uint32(elf.PT_INTERP), Off: headers, Filesz: uint64(len(interpreter) + 1)}
	}
	var out bytes.Buffer
	for _, part := range []any{head, program} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			tb.Fatal(err)
		}
	}
	return append(out.Bytes(), interpreter+"\x00"...)
}

// TestWhyNotStarted is INTEROP 32: what a plugin lacks that is there and cannot
// be started. https://github.com/fatihtokus/scan2html/issues/44
func TestWhyNotStarted(t *testing.T) {
	t.Parallel()
	here := elf.EM_NONE
	for machine := range elf.Machine(1 << 10) {
		if machineHere() != "" && machine.String() == "EM_"+machineHere() {
			here = machine
		}
	}
	there := elf.EM_S390
	if here == there {
		there = elf.EM_AARCH64
	}
	for name, c := range map[string]struct {
		content []byte
		want    string
	}{
		"glibc where there is none": {newELF(t, here, "/lib64/ld-nowhere.so.2"), "/lib64/ld-nowhere.so.2, which it needs to start, is missing"},
		"an interpreter that is":    {newELF(t, here, os.Args[0]), ""},
		"static":                    {newELF(t, here, ""), ""},
		"another machine":           {newELF(t, there, ""), "built for " + strings.TrimPrefix(there.String(), "EM_")},
		"a script":                  {[]byte("#!/nowhere/sh -e\nexit"), "/nowhere/sh, which"},
		"a script without program":  {[]byte("#!\n"), ""},
		"a broken file":             {newELF(t, here, "/nowhere")[:40], ""},
		"text":                      {[]byte("plugin"), ""},
		"empty":                     {nil, ""},
	} {
		path := filepath.Join(t.TempDir(), "plugin")
		if err := os.WriteFile(path, c.content, 0o600); err != nil {
			t.Fatal(err)
		}
		why, next := whyNotStarted(path)
		if (why == "") != (c.want == "") || !strings.Contains(why, c.want) || (why == "") != (next == "") {
			t.Errorf("%s: %q, %q; want %q", name, why, next, c.want)
		}
	}
	if why, _ := whyNotStarted(filepath.Join(t.TempDir(), "missing")); why != "" {
		t.Errorf("missing: %q", why)
	}
}
