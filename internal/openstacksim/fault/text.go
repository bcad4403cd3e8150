package fault

import (
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/nearest"
)

// ErrText reports a text that [Parse] cannot read.
var ErrText = errors.New("no such fault")

// Parse reads a rule of one of the [Kinds]: KIND[:RATE][,SETTING=VALUE…].
// RATE is a share of the calls or servers, such as 10% or 0.1. A setting with a
// comma is quoted as in CSV: "message=a, b". Its errors wrap [ErrText].
func Parse(text string) (Rule, error) {
	lines := csv.NewReader(strings.NewReader(text))
	lines.LazyQuotes = true
	fields, err := lines.Read()
	if err != nil || len(fields) == 0 {
		return Rule{}, fmt.Errorf("%w: %q; write KIND[:RATE][,SETTING=VALUE…]", ErrText, text)
	}
	name, rate, rated := strings.Cut(fields[0], ":")
	kinds := Kinds()
	at := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if at < 0 {
		return Rule{}, fmt.Errorf("%w: %q; %s", ErrText, name, suggest(name, kindNames(kinds)))
	}
	t := &reader{kind: kinds[at], given: map[string]string{}}
	rule := Rule{Text: text}
	if rated {
		t.rate(rate, &rule)
	}
	for _, field := range fields[1:] {
		t.take(field, &rule)
	}
	for _, setting := range t.kind.Settings {
		if _, given := t.given[setting.Name]; setting.Required && !given {
			t.wrong(setting.Name + " is required: " + setting.Meaning)
		}
	}
	if t.err == nil {
		t.common(&rule)
		t.kind.build(t, &rule)
	}
	if t.err != nil {
		return Rule{}, fmt.Errorf("%w: %s: %w", ErrText, text, t.err)
	}
	return rule, nil
}

func kindNames(kinds []Kind) []string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

func suggest(name string, known []string) string {
	if near := nearest.To(name, known, 1); len(near) == 1 {
		return "did you mean " + near[0] + "?"
	}
	return "known are " + strings.Join(known, ", ")
}

// names are those of a kind's own settings.
func (k Kind) names() []string {
	names := make([]string, 0, len(k.Settings))
	for _, s := range k.Settings {
		names = append(names, s.Name)
	}
	return names
}

// reader is a rule while it is read. The first mistake is kept.
type reader struct {
	kind  Kind
	given map[string]string
	globs map[string]string // of servers, by field
	err   error
}

func (t *reader) wrong(problem string) {
	if t.err == nil {
		t.err = errors.New(problem)
	}
}

func (t *reader) rate(text string, rule *Rule) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	switch {
	case t.kind.Of == ScopeCloud:
		t.wrong(t.kind.Name + " takes no rate: it happens to the whole cloud")
	case err != nil || share <= 0 || share > 1:
		t.wrong(fmt.Sprintf("rate %q: write a share above 0, such as 10%% or 0.1", text))
	case share < 1:
		rule.Share = share
	}
}

// take reads one setting.
func (t *reader) take(field string, rule *Rule) {
	key, value, found := strings.Cut(field, "=")
	known := t.kind.names()
	for _, setting := range CommonSettings() {
		if t.kind.Of == ScopeCloud && slices.Contains([]string{"skip", "every", "times"}, setting.Name) {
			continue
		}
		known = append(known, setting.Name)
	}
	_, twice := t.given[key]
	switch {
	case !found:
		t.wrong(fmt.Sprintf("%q: write SETTING=VALUE", field))
	case !slices.Contains(known, key):
		t.wrong(fmt.Sprintf("unknown setting %q of %s; %s", key, t.kind.Name, suggest(key, known)))
	case key == "match":
		t.match(value, rule)
	case twice:
		t.wrong(key + " is given twice")
	default:
		t.given[key] = value
	}
}

// match reads what a fault happens to.
func (t *reader) match(value string, rule *Rule) {
	field, pattern, _ := strings.Cut(value, ":")
	known := false
	switch scope := t.kind.Of; {
	case scope == ScopeCloud && t.kind.Name != "quota":
		t.wrong(t.kind.Name + " takes no match: it happens to the whole cloud")
	case field == "project":
		known = rule.Project != ""
		rule.Project = pattern
	case scope == ScopeCloud:
		t.wrong(fmt.Sprintf("match=%s: write match=project:NAME", value))
	case scope == ScopeCalls:
		known = rule.Operation != ""
		rule.Operation = Operation(value)
		t.checkOperation(rule.Operation)
	case field == "host":
		known = rule.Host != ""
		rule.Host = pattern
	default:
		t.matchServer(value, field, pattern)
		rule.Server = t.selects
	}
	if known {
		t.wrong("match is given twice for one thing; write two faults")
	}
}

func (t *reader) checkOperation(pattern Operation) {
	var known []string
	for _, op := range Operations() {
		if pattern.Matches(op) {
			return
		}
		known = append(known, string(op))
	}
	t.wrong(fmt.Sprintf("match=%s matches no operation; %s", pattern, suggest(string(pattern), known)))
}

// matchServer adds a pattern for one field of servers.
func (t *reader) matchServer(value, field, pattern string) {
	_, known := serverFields(ServerInfo{})[field]
	_, err := path.Match(pattern, "")
	switch {
	case !known:
		t.wrong(fmt.Sprintf("match=%s: write FIELD:PATTERN; fields are host, project, %s", value,
			strings.Join(slices.Sorted(maps.Keys(serverFields(ServerInfo{}))), ", ")))
	case err != nil:
		t.wrong(fmt.Sprintf("match=%s: %v", value, err))
	default:
		if t.globs == nil {
			t.globs = map[string]string{}
		}
		t.globs[field] = pattern
	}
}

// serverFields are what a new server can be chosen by.
func serverFields(info ServerInfo) map[string][]string {
	return map[string][]string{"name": {info.Name}, "flavor": {info.Flavor}, "tag": info.Tags}
}

func (t *reader) selects(info ServerInfo) bool {
	fields := serverFields(info)
	for field, pattern := range t.globs {
		if !slices.ContainsFunc(fields[field], func(value string) bool {
			matches, _ := path.Match(pattern, value) // a pattern that is read is good
			return matches
		}) {
			return false
		}
	}
	return true
}

// common reads the settings that every kind has.
func (t *reader) common(rule *Rule) {
	for key, into := range map[string]*int{"skip": &rule.Skip, "every": &rule.Every, "times": &rule.Times} {
		if _, given := t.given[key]; given {
			*into = t.count(key)
		}
	}
	for key, into := range map[string]*time.Duration{"after": &rule.After, "for": &rule.For} {
		if _, given := t.given[key]; given {
			*into = t.duration(key)
		}
	}
}

// text is a setting or its default.
func (t *reader) text(key string) string {
	value, given := t.given[key]
	if at := slices.Index(t.kind.names(), key); !given && at >= 0 {
		value = t.kind.Settings[at].Default
	}
	return value
}

// value reads a setting; one that is not good is wrong, and the remedy says what to write.
func value[T any](t *reader, key, remedy string, parse func(string) (T, error), good func(T) bool) T {
	v, err := parse(t.text(key))
	if err != nil || !good(v) {
		t.wrong(fmt.Sprintf("%s=%s: write %s", key, t.text(key), remedy))
	}
	return v
}

func (t *reader) status(key string) int {
	return value(t, key, "an HTTP status from 400 to 599", strconv.Atoi, func(n int) bool { return n >= http.StatusBadRequest && n <= 599 })
}

func (t *reader) duration(key string) time.Duration {
	if d := t.offset(key); d > 0 {
		return d
	}
	return value(t, key, "a time above 0", time.ParseDuration, func(d time.Duration) bool { return d > 0 })
}

func (t *reader) offset(key string) time.Duration {
	return value(t, key, "a time with a unit, such as 2s", time.ParseDuration, func(time.Duration) bool { return true })
}

func (t *reader) count(key string) int {
	return value(t, key, "a whole number from 1", strconv.Atoi, func(n int) bool { return n >= 1 })
}

func (t *reader) countOrAll(key string) int {
	if t.text(key) == "all" {
		return Always
	}
	return t.count(key)
}

func (t *reader) limit(key string) int {
	return value(t, key, "a whole number, or -1 for no limit", strconv.Atoi, func(n int) bool { return n >= Unlimited })
}

func (t *reader) number(key string) float64 {
	parse := func(text string) (float64, error) { return strconv.ParseFloat(text, 64) }
	return value(t, key, "a number above 0", parse, func(n float64) bool { return n > 0 })
}
