package cloud

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

const (
	// secretRun is how many characters of a secret in a row count as the secret:
	// services shorten and escape what they repeat. A shorter one counts whole.
	secretRun = 8
	// sentRun is the same for what requests carry. It is longer, because user data
	// and messages have words in common.
	sentRun = 12
	// leastSecret and leastSent are the shortest texts that are looked for. Shorter
	// ones are part of any message.
	leastSecret = 3
	leastSent   = 8
	// loginsKept is how many secrets of earlier credentials are still hidden.
	loginsKept = 8
)

// notShown stands in for the end of a message that repeats the request.
const notShown = "(the rest repeats what was sent and is not shown)"

// redactor knows what no message may show: the secrets of the credentials, and
// what requests carry for servers. Its methods may be called concurrently.
type redactor struct {
	mu    sync.Mutex
	fixed []string        // for as long as the client lives
	login []string        // of the credentials, present and past
	known map[string]bool // what addSent got
	sent  []string        // their letters and digits
}

// addFixed adds secrets that do not change.
func (r *redactor) addFixed(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range secrets {
		if len(secret) >= leastSecret {
			r.fixed = append(r.fixed, spellings(secret)...)
		}
	}
}

// spellings are how a text stands in JSON, in HTML, in an address, and in base64.
func spellings(text string) []string {
	quoted, _ := json.Marshal(text) // text has a form in JSON
	return slices.Compact(slices.Sorted(slices.Values([]string{
		text, string(quoted[1 : len(quoted)-1]), html.EscapeString(text), url.QueryEscape(text), url.PathEscape(text),
		base64.StdEncoding.EncodeToString([]byte(text)),
	})))
}

// setLogin adds the secrets of the present credentials.
func (r *redactor) setLogin(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, secret := range secrets {
		if len(secret) >= leastSecret {
			r.login = append(slices.DeleteFunc(r.login, func(known string) bool { return known == secret }), secret)
		}
	}
	r.login = r.login[max(0, len(r.login)-loginsKept):]
}

// addSent adds texts that requests carry; Nova gets user data in base64.
func (r *redactor) addSent(texts ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, text := range texts {
		if r.known[text] {
			continue
		}
		if r.known == nil {
			r.known = map[string]bool{}
		}
		r.known[text] = true
		for _, form := range spellings(text) {
			if letters, _ := lettersOf(form); len(letters) >= leastSent {
				r.sent = append(r.sent, letters)
			}
		}
	}
}

// echo is where services begin to repeat a request: "Value: …" in the checks of
// Nova and Keystone, or an object in the form of JSON or of Python.
var echo = regexp.MustCompile(`\bValue: |\{\s*\\?u?['"]`)

// verdict is how the checks of Nova and Keystone end, after the value.
var verdict = regexp.MustCompile(`(?:is too (?:long|short)|is not of type '[a-z]+'|is a required property|has non-unique elements|` +
	`is (?:less|greater) than the (?:minimum|maximum) of \d+|is not valid under any of the given schemas|is not a '[a-z-]+')\.?$`)

// hide cuts a message where it begins to repeat what was sent.
func (r *redactor) hide(message string) string {
	end := len(message)
	if at := echo.FindStringIndex(message); at != nil {
		end = at[0]
	}
	letters, places := lettersOf(message)
	r.mu.Lock()
	secrets := slices.Clone(r.fixed)
	for _, secret := range r.login {
		secrets = append(secrets, spellings(secret)...)
	}
	for _, secret := range secrets {
		if at := firstRun(message, secret, secretRun); at >= 0 {
			end = min(end, at)
		}
	}
	for _, text := range r.sent {
		if at := firstRun(letters, text, sentRun); at >= 0 {
			end = min(end, places[at])
		}
	}
	r.mu.Unlock()
	if end == len(message) {
		return message
	}
	instead := notShown
	if reason := verdict.FindString(message[end:]); reason != "" {
		instead = "(the value is not shown) " + reason
	}
	return strings.TrimSpace(message[:end] + instead)
}

// firstRun returns where a message repeats that many bytes of a text in a row,
// or all of a shorter one, and -1 where it does not.
func firstRun(message, text string, run int) int {
	if len(text) <= run {
		return strings.Index(message, text)
	}
	for i := 0; i+run <= len(message); i++ {
		if strings.Contains(text, message[i:i+run]) {
			return i
		}
	}
	return -1
}

// lettersOf returns the letters and digits of a text, and where each of their
// bytes stands in it. Escapes of white space are no letters.
func lettersOf(text string) (letters string, places []int) {
	var b strings.Builder
	escaped := false
	for i, r := range text {
		if escaped {
			escaped = false
			if strings.ContainsRune("nrt", r) {
				continue
			}
		}
		if escaped = r == '\\'; escaped {
			continue
		}
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			for range len(string(r)) {
				places = append(places, i)
			}
			b.WriteRune(r)
		}
	}
	return b.String(), places
}
