package openstacksim

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// stableHex gives 32 hexadecimal digits that depend on the text only.
func stableHex(text string) string {
	h := fnv.New128a()
	_, _ = h.Write([]byte(text))
	return fmt.Sprintf("%x", h.Sum(nil))
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return strings.TrimSpace(text[len(prefix):]), true
}

// isUUID tells whether text is a UUID as OpenStack writes them.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, r := range text {
		switch i {
		case 8, 13, 18, 23:
			if r != '-' {
				return false
			}
		default:
			if !strings.ContainsRune("0123456789abcdefABCDEF", r) {
				return false
			}
		}
	}
	return true
}
