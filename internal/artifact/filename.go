package artifact

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// ReceiptName is the file that an installer puts beside the executable. No file
// of a plugin has this name.
const ReceiptName = "fleeting-plugin.receipt.json"

// maxFileName is the longest name of one file, in bytes, on Linux. Windows and
// macOS count 255 UTF-16 units, which are never more.
const maxFileName = 255

// FileNameProblem returns why a plugin cannot have a file or folder of this name,
// or "". A name is refused if any system that plugins are for writes it elsewhere,
// opens something else or cannot hold it: what installs on one system installs on
// all.
//
// Windows: https://learn.microsoft.com/windows/win32/fileio/naming-a-file.
// Names that begin with ".wh." delete files in a layer: image-spec v1.1.1,
// layer.md, "Whiteouts".
func FileNameProblem(name string) string {
	switch {
	case name == "":
		return "it is empty"
	case name == "." || name == "..":
		return "it is a relative path"
	case len(name) > maxFileName:
		return "it is too long"
	case strings.HasPrefix(name, ".wh."):
		return "it deletes a file where layers are unpacked"
	case strings.ContainsAny(name, "/\\:*?\"<>|"):
		return `it has one of the characters / \ : * ? " < > |`
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return "it has a control character or is not UTF-8"
	case strings.HasSuffix(name, " ") || strings.HasSuffix(name, "."):
		return "it ends in a space or a dot"
	case opensDevice(name):
		return "Windows opens a device by it"
	case FoldFileName(name) == FoldFileName(ReceiptName):
		return "it is the installer's receipt"
	}
	return ""
}

// opensDevice knows the names that Windows opens as devices, with any extension
// and with spaces before it.
func opensDevice(name string) bool {
	base, _, _ := strings.Cut(strings.ToLower(name), ".")
	base = strings.TrimRight(base, " ")
	if slices.Contains([]string{"con", "prn", "aux", "nul", "conin$", "conout$"}, base) {
		return true
	}
	port, ok := strings.CutPrefix(base, "com")
	if !ok {
		port, ok = strings.CutPrefix(base, "lpt")
	}
	return ok && slices.Contains([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"}, port)
}

// FoldFileName returns a text that is the same for names that are one file on some
// system: Windows and macOS do not tell upper from lower case, and macOS does not
// tell an accented letter from a letter and its accent.
func FoldFileName(name string) string {
	return norm.NFD.String(strings.Map(smallest, norm.NFD.String(name)))
}

// smallest returns the first of the characters that differ in case only.
func smallest(r rune) rune {
	first := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		first = min(first, next)
	}
	return first
}
