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

// stableUUID is stableHex in the form of a UUID.
func stableUUID(text string) string {
	h := stableHex(text)
	return fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return strings.TrimSpace(text[len(prefix):]), true
}
