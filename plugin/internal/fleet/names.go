package fleet

import (
	"crypto/rand"
	"strings"
)

// suffixLength keeps a server name within the 63 characters of a host name
// for the longest group name, 54, and the dash.
const suffixLength = 8

const suffixAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789"

func newName(group, suffix string) string { return group + "-" + suffix }

// randomSuffix returns the last part of a name. With 36^8 suffixes a clash inside
// one group is not worth handling beyond asking again.
func randomSuffix() string {
	var b strings.Builder
	for b.Len() < suffixLength {
		var random [suffixLength]byte
		rand.Read(random[:])
		for _, c := range random {
			// Bytes beyond the last multiple of 36 would favour some letters.
			if c < 252 && b.Len() < suffixLength {
				b.WriteByte(suffixAlphabet[c%36])
			}
		}
	}
	return b.String()
}

// IsName reports whether a server name is one that newName could have made.
func IsName(group, name string) bool {
	suffix, ok := strings.CutPrefix(name, group+"-")
	if !ok || len(suffix) != suffixLength {
		return false
	}
	for _, c := range suffix {
		if !strings.ContainsRune(suffixAlphabet, c) {
			return false
		}
	}
	return true
}
