package artifact_test

import (
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/artifact"
)

func TestFileNameProblem(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"plugin", "plugin.exe", "LICENSE", "helper.dll", "ünïcode", ".hidden", "a b", "console", "com10", "com", "lpt", "nulls", "con1", "auxiliary.txt",
		"$conin", "x.con", "..x", "...x", "(1)", strings.Repeat("n", 255),
	} {
		if problem := artifact.FileNameProblem(name); problem != "" {
			t.Errorf("%q is refused: %s", name, problem)
		}
	}
	for _, name := range []string{
		"", ".", "..", "a/b", `a\b`, "C:", "C:x", "plugin:stream", "plugin.exe::$DATA", "a*", "a?", `a"`, "a<", "a>", "a|",
		"a\n", "a\x00", "a\x7f", "a\u0085", "a\xff", "a\uFFFD", "a.", "a ", "...", " ", "a. .", strings.Repeat("n", 256),
		"con", "CON", "Con.txt", "con.a.b", "con .txt", "con  ", "prn", "aux.h", "nul", "NUL.tar.gz", "conin$", "CONOUT$", "conout$.txt",
		"com0", "com1", "COM9.txt", "lpt0", "lpt3.x", "com1 .x", "com¹", "COM².txt", "lpt³",
		".wh.plugin", ".wh..wh..opq", artifact.ReceiptName, strings.ToUpper(artifact.ReceiptName), "fleeting-plugin.receipt.jſon",
	} {
		if artifact.FileNameProblem(name) == "" {
			t.Errorf("%q is taken", name)
		}
	}
}

func TestFoldFileName(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"plugin", "PLUGIN", "Plugin"},
		{"é", "É", "e\u0301", "E\u0301"},
		{"K", "k", "\u212a"},
		{"s", "S", "ſ"},
		{"σ", "ς", "Σ"},
		{"ǆ", "ǅ", "Ǆ"},
		{"a\u0323\u0302", "\u1ead", "A\u0302\u0323"},
		{"Å", "å", "\u212b", "a\u030a"},
	} {
		for _, name := range same[1:] {
			if artifact.FoldFileName(name) != artifact.FoldFileName(same[0]) {
				t.Errorf("%q and %q are two", same[0], name)
			}
		}
	}
	for _, other := range [][2]string{{"a", "b"}, {"e", "é"}, {"plugin", "plugin.exe"}, {"o", "ö"}} {
		if artifact.FoldFileName(other[0]) == artifact.FoldFileName(other[1]) {
			t.Errorf("%q and %q are one", other[0], other[1])
		}
	}
}
