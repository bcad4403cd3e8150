package installer

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// scope says which names a rule is about. Only parseScope makes one.
type scope struct {
	// text is as it was written, pattern with its registry in one spelling.
	text, pattern string
}

// anyName is the scope of everything.
func anyName() scope { return scope{"**", "**"} }

// parseScope reads registry/repository, in which * matches anything within an
// element and a last element ** one or more of them. What no reference can be is an
// error: a rule that never decides would leave its names to a laxer one.
func parseScope(text string) (scope, error) {
	if text == "**" {
		return anyName(), nil
	}
	if text == "" {
		return scope{}, errors.New("no scope")
	}
	if _, _, found := strings.Cut(text, "://"); found {
		return scope{}, fmt.Errorf("the scope %q has a scheme; omit it", text)
	}
	elements := strings.Split(text, "/")
	if len(elements) == 1 || !looksLikeHost(elements[0]) && !strings.Contains(elements[0], "*") {
		return scope{}, fmt.Errorf("the scope %q matches nothing: it begins with a registry, as in %s/%s", text, DefaultRegistry, text)
	}
	if err := checkRegistryPattern(elements[0]); err != nil {
		return scope{}, fmt.Errorf("the scope %q matches nothing: %w", text, err)
	}
	for i, element := range elements[1:] {
		if element == "**" && i == len(elements)-2 {
			break
		}
		if err := checkElementPattern(element); err != nil {
			return scope{}, fmt.Errorf("the scope %q matches nothing: %w", text, err)
		}
	}
	_, repository, _ := strings.Cut(text, "/")
	if err := checkRepository(strings.NewReplacer("**", "a", "*", "a").Replace(repository)); err != nil {
		return scope{}, fmt.Errorf("the scope %q matches nothing: %w", text, err)
	}
	return scope{text, oneSpelling(text)}, nil
}

// checkRegistryPattern tries what * can match, alone and with a port.
func checkRegistryPattern(pattern string) error {
	if strings.Contains(pattern, "**") {
		return fmt.Errorf("element %q: ** may only be the last element", pattern)
	}
	var err error
	for _, expansion := range []string{"a", "1", "a.a", "a:1", ""} {
		host := strings.ReplaceAll(pattern, "*", expansion)
		if err = checkRegistry(host); err == nil && looksLikeHost(host) {
			return nil
		}
	}
	return cmp.Or(err, fmt.Errorf("registry %q: not a host name", pattern))
}

// checkElementPattern puts a letter in place of each *: where any text fits, so
// does that.
func checkElementPattern(pattern string) error {
	version := ""
	if at := strings.IndexAny(pattern, ":@"); at >= 0 {
		version = pattern[at:]
	}
	lower := strings.ToLower(pattern)
	switch {
	case version != "":
		return fmt.Errorf("element %q: a rule is about all versions of a plugin; omit %q", pattern, version)
	case strings.Contains(pattern, "**"):
		return fmt.Errorf("element %q: ** may only be the last element", pattern)
	case checkRepository(strings.ReplaceAll(pattern, "*", "a")) == nil:
		return nil
	case lower != pattern && checkElementPattern(lower) == nil:
		return fmt.Errorf("element %q: names of repositories are lower case; write %q", pattern, lower)
	}
	return fmt.Errorf("element %q is not lower-case letters and digits joined by ., _, __ or hyphens, with * as the only wildcard", pattern)
}

// matches reports whether a name, registry/repository, is in the scope.
func (s scope) matches(name string) bool {
	patterns, elements := strings.Split(s.pattern, "/"), strings.Split(oneSpelling(name), "/")
	for i, pattern := range patterns {
		if pattern == "**" {
			return len(elements) > i
		}
		if i >= len(elements) || !elementMatches(pattern, elements[i]) {
			return false
		}
	}
	return len(patterns) == len(elements)
}

func elementMatches(pattern, element string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == element
	}
	ok, err := path.Match(strings.NewReplacer(`[`, `\[`, `\`, `\\`).Replace(pattern), element)
	return ok && err == nil
}

// fixed is the beginning without wildcards.
func (s scope) fixed() string {
	fixed, _, _ := strings.Cut(s.pattern, "*")
	return fixed
}

// letters are the characters that are no wildcards.
func (s scope) letters() int { return len(strings.ReplaceAll(s.pattern, "*", "")) }

// open reports whether the scope leaves open how many elements a name has.
func (s scope) open() bool { return strings.HasSuffix(s.pattern, "**") }

// compare orders scopes, the more specific first.
func (s scope) compare(other scope) int {
	order, _ := s.before(other)
	return order
}

// before orders scopes, and says why the more specific one is: the longest fixed
// beginning, then what names the number of elements, then what has more fixed
// letters.
func (s scope) before(other scope) (order int, why string) {
	switch {
	case len(s.fixed()) != len(other.fixed()):
		return len(other.fixed()) - len(s.fixed()), "has the longer beginning without wildcards"
	case s.open() != other.open():
		return boolToInt(s.open()) - boolToInt(other.open()), "names the number of elements"
	}
	return other.letters() - s.letters(), "has more letters"
}

// crosses reports whether some names are in both scopes, and neither has all of
// the other's: then it is easy to expect the other one to decide.
func (s scope) crosses(other scope) bool {
	return s.meets(other) && !s.within(other) && !other.within(s)
}

// within reports whether every name in the scope is in the other.
func (s scope) within(other scope) bool {
	// Only a wildcard of the other matches one of this.
	patterns, elements := strings.Split(other.pattern, "/"), strings.Split(s.pattern, "/")
	for i, pattern := range patterns {
		if pattern == "**" {
			return len(elements) > i
		}
		if i >= len(elements) || elements[i] == "**" || !elementMatches(pattern, elements[i]) {
			return false
		}
	}
	return len(patterns) == len(elements)
}

// meets reports whether some name is in both scopes.
func (s scope) meets(other scope) bool {
	a, b := strings.Split(s.pattern, "/"), strings.Split(other.pattern, "/")
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a) || i >= len(b):
			return false
		case a[i] == "**" || b[i] == "**":
			return true
		case !globsMeet(a[i], b[i]):
			return false
		}
	}
	return true
}

// globsMeet reports whether some text matches both patterns.
func globsMeet(a, b string) bool {
	switch {
	case a == "" || b == "":
		return strings.Trim(a+b, "*") == ""
	case a[0] == '*':
		return globsMeet(a[1:], b) || globsMeet(a, b[1:])
	case b[0] == '*':
		return globsMeet(a, b[1:]) || globsMeet(a[1:], b)
	}
	return a[0] == b[0] && globsMeet(a[1:], b[1:])
}

// oneSpelling writes a name or scope in one way of those that reach the same
// repository, so that none of them escapes a rule into a laxer one: the registry in
// lower case, no port 443, one name for Docker Hub and its official images, one
// form of an IPv6 address, and of an IPv4 address within one.
func oneSpelling(name string) string {
	host, rest, nested := strings.Cut(name, "/")
	host = oneHost(host)
	if host == dockerHub && nested && rest != "**" && !strings.Contains(rest, "/") {
		rest = "library/" + rest
	}
	if !nested {
		return host
	}
	return host + "/" + rest
}

func oneHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ":443")
	if slices.Contains([]string{"docker.io", "registry-1.docker.io", "registry.hub.docker.com"}, host) {
		return dockerHub
	}
	if inner, port, ok := strings.Cut(host, "]"); ok {
		addr, err := netip.ParseAddr(strings.TrimPrefix(inner, "["))
		switch {
		case err == nil && addr.Is4In6():
			return addr.Unmap().String() + port // the same machine
		case err == nil:
			return "[" + addr.String() + "]" + port
		}
	}
	return host
}
