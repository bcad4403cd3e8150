package cloud

import "strings"

// quotaTexts, in lower case, are how services say that a quota or a limit of
// the project is reached. Status 403 also means policy or a wrong flavor, and
// a server's fault has no kind at all, so only the text tells.
func quotaTexts() []string {
	return []string{
		"quota exceeded", "exceeds available quota", "exceedsavailablequota", "volumelimitexceeded",
		"exceeded for resources", "maximum number of ports exceeded", "quota has been exceeded",
		"exceeds allowed", "too many servers in group", "maximum number of key pairs exceeded",
		"overquota", "over quota",
	}
}

// capacityTexts, in lower case, are how services say that the cloud is full.
func capacityTexts() []string {
	return []string{
		"no valid host", "exceeded maximum number of retries", "exhausted all hosts",
		"no more ip addresses", "no fixed ip addresses available", "ipaddressgenerationfailure",
		"no available", "insufficient", "max retries exceeded", "maxretriesexceeded",
	}
}

func isQuota(text string) bool { return containsAny(text, quotaTexts()) }

func containsAny(text string, parts []string) bool {
	text = strings.ToLower(text)
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// FaultKind classifies the fault message of a server in ERROR as [ErrQuota],
// [ErrNoHost], or nil for anything else.
func FaultKind(message string) error {
	switch {
	case isQuota(message):
		return ErrQuota
	case containsAny(message, capacityTexts()):
		return ErrNoHost
	default:
		return nil
	}
}
