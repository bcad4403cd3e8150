package openstacksim

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

// FaultKind is a kind of fault that [ParseRule] reads.
type FaultKind struct {
	Name string
	// Of is what it happens to.
	Of FaultScope
	// Effect says what goes wrong.
	Effect string
	// Settings are those of the kind, beside the ones that every kind has.
	Settings []FaultSetting

	build func(*faultText, *Rule)
}

// FaultScope is what a kind of fault happens to.
type FaultScope string

// The scopes of faults.
const (
	ScopeCalls   FaultScope = "calls"
	ScopeServers FaultScope = "servers"
	ScopeCloud   FaultScope = "cloud"
)

// FaultSetting is one setting of a fault.
type FaultSetting struct {
	Name, Meaning string
	// Default is what holds if it is omitted; empty means that it is required,
	// or changes nothing.
	Default  string
	Required bool
}

// CommonFaultSettings are those that kinds of every scope have; times, skip and
// every count calls or servers.
func CommonFaultSettings() []FaultSetting {
	return []FaultSetting{
		{Name: "match", Meaning: "what it happens to; can be given several times"},
		{Name: "skip", Meaning: "how many calls or servers pass first"},
		{Name: "every", Meaning: "meets each n-th call or server only"},
		{Name: "times", Meaning: "ends the fault after so many"},
		{Name: "after", Meaning: "begins so long after it is set"},
		{Name: "for", Meaning: "ends so long after it began"},
	}
}

// FaultKinds lists the kinds of faults, those of one scope together.
func FaultKinds() []FaultKind {
	return slices.Concat(callFaults(), serverFaults(), cloudFaults())
}

func callFaults() []FaultKind {
	const calls = ScopeCalls
	return []FaultKind{
		{"error", calls, "The service refuses the call in its own words. Nothing is done.", []FaultSetting{
			{Name: "status", Meaning: "HTTP status", Default: "503"},
			{Name: "message", Meaning: "the service's words", Default: "The service is temporarily unavailable."},
			{Name: "retry-after", Meaning: "seconds, or an HTTP date, in the header of that name"},
		}, func(t *faultText, r *Rule) {
			r.Fault = Refuse(t.status("status"), t.text("message"))
			r.Fault.RetryAfter = t.text("retry-after")
		}},
		{"gateway", calls, "A proxy that has no service behind it answers with a page of HTML. Nothing is done.", []FaultSetting{
			{Name: "status", Meaning: "HTTP status", Default: "503"},
			{Name: "retry-after", Meaning: "seconds, or an HTTP date, in the header of that name"},
		}, func(t *faultText, r *Rule) {
			r.Fault = Gateway(t.status("status"))
			r.Fault.RetryAfter = t.text("retry-after")
		}},
		{"reset", calls, "The connection is closed. Nothing is done.", nil, func(_ *faultText, r *Rule) { r.Fault = Reset() }},
		{"hang", calls, "Nothing is done, and no answer comes until the client gives up.", nil, func(_ *faultText, r *Rule) { r.Fault = Hang() }},
		{"lost", calls, "The call is carried out, and its answer is lost.", []FaultSetting{
			{Name: "answer", Meaning: "what the client sees: `reset`, `hang`, `truncated`, or the status of a proxy's page", Default: "reset"},
		}, buildLost},
		{"delay", calls, "The call takes longer.", []FaultSetting{
			{Name: "by", Meaning: "time", Required: true},
		}, func(t *faultText, r *Rule) { r.Fault = Delay(t.duration("by")) }},
		{"rate-limit", calls, "Calls beyond a rate of each project are answered with 429.", []FaultSetting{
			{Name: "calls", Meaning: "calls a second that pass", Required: true},
			{Name: "burst", Meaning: "calls that pass at once", Default: "1"},
			{Name: "retry-after", Meaning: "seconds, or an HTTP date, in the header of that name", Default: "1"},
		}, func(t *faultText, r *Rule) {
			r.PerSecond, r.Burst = t.number("calls"), t.count("burst")
			r.Fault = RateLimited(t.text("retry-after"))
		}},
	}
}

func buildLost(t *faultText, r *Rule) {
	switch answer := t.text("answer"); answer {
	case "reset":
		r.Fault = CommitThenReset()
	case "hang":
		r.Fault = CommitThenHang()
	case "truncated":
		r.Fault = CommitThenTruncate()
	default:
		r.Fault = CommitThenStatus(t.status("answer"))
	}
}

func serverFaults() []FaultKind {
	const servers = ScopeServers
	simple := func(name, effect string, change func(*Fate)) FaultKind {
		return FaultKind{name, servers, effect, nil, func(_ *faultText, r *Rule) {
			r.Fate = func(f *Fate, _ ServerInfo) { change(f) }
		}}
	}
	timed := func(name, effect, setting, meaning string, change func(*Fate, time.Duration)) FaultKind {
		return FaultKind{name, servers, effect, []FaultSetting{{Name: setting, Meaning: meaning, Required: true}}, func(t *faultText, r *Rule) {
			d := t.duration(setting)
			r.Fate = func(f *Fate, _ ServerInfo) { change(f, d) }
		}}
	}
	return []FaultKind{
		{"build-error", servers, "The build ends in ERROR.", []FaultSetting{
			{Name: "message", Meaning: "why, after `Build of instance ID aborted:`", Default: "Failed to allocate the network(s), not rescheduling."},
		}, func(t *faultText, r *Rule) {
			message := t.text("message")
			r.Fate = func(f *Fate, info ServerInfo) { f.Fault = "Build of instance " + info.ID + " aborted: " + message }
		}},
		simple("no-valid-host", "The scheduler finds no host, and the server ends in ERROR.", func(f *Fate) { f.Fault, f.Hostless = FaultNoValidHost, true }),
		simple("stuck-building", "The server stays in BUILD.", func(f *Fate) { f.StuckBuilding = true }),
		timed("slow-build", "The build takes another time.", "time", "from the create to ACTIVE", func(f *Fate, d time.Duration) { f.BuildTime = d }),
		timed("power-off", "The guest shuts itself down.", "uptime", "time that it is ACTIVE", func(f *Fate, d time.Duration) { f.PowerOffAfter = d }),
		{"status", servers, "Nova shows another status once the server has a host, whatever becomes of it.", []FaultSetting{
			{Name: "status", Meaning: "such as `UNKNOWN`", Required: true},
		}, func(t *faultText, r *Rule) {
			status := t.text("status")
			r.Fate = func(f *Fate, _ ServerInfo) { f.Status = status }
		}},
		simple("no-address", "Nova shows no addresses of the server.", func(f *Fate) { f.Addressless = true }),
		simple("unreadable", "A GET of the server answers 500, and listings lack it.", func(f *Fate) { f.Unreadable = true }),
		timed("unlisted", "Listings show the server late.", "by", "time", func(f *Fate, d time.Duration) { f.HiddenFor = d }),
		timed("not-found", "A GET of the new server answers 404 at first.", "by", "time", func(f *Fate, d time.Duration) { f.MissingFor = d }),
		simple("admin-lock", "An administrator locks the server, so that its owner cannot delete it.", func(f *Fate) { f.AdminLock = true }),
		simple("stuck-deleting", "The server stays in the task state deleting until it is force-deleted.", func(f *Fate) { f.StuckDeleting = true }),
		{"delete-ignored", servers, "Deletions, forced ones too, are accepted without effect.", []FaultSetting{
			{Name: "deletions", Meaning: "how many", Default: "all"},
		}, func(t *faultText, r *Rule) {
			n := t.countOrAll("deletions")
			r.Fate = func(f *Fate, _ ServerInfo) { f.IgnoreDeletes = n }
		}},
		{"delete-error", servers, "Deletions end in ERROR.", []FaultSetting{
			{Name: "deletions", Meaning: "how many", Default: "1"},
		}, func(t *faultText, r *Rule) {
			n := t.countOrAll("deletions")
			r.Fate = func(f *Fate, _ ServerInfo) { f.FailDeletes = n }
		}},
		timed("lingering", "Listings show the deleted server as DELETED, without metadata, for a while.", "by", "time", func(f *Fate, d time.Duration) { f.LingersFor = d }),
		simple("bare", "While the server is being deleted, Nova shows it without metadata.", func(f *Fate) { f.Bare = true }),
		simple("ghost", "Listings go on showing the deleted server, while calls that name it answer 404.", func(f *Fate) { f.Ghost = true }),
	}
}

func cloudFaults() []FaultKind {
	const cloud = ScopeCloud
	changes := func(change func(*Condition)) func(*faultText, *Rule) {
		return func(_ *faultText, r *Rule) { r.Condition = change }
	}
	timed := func(setting string, change func(*Condition, time.Duration)) func(*faultText, *Rule) {
		return func(t *faultText, r *Rule) {
			d := t.duration(setting)
			r.Condition = func(c *Condition) { change(c, d) }
		}
	}
	quota := FaultKind{"quota", cloud, "The project may have less, or more, than at the start. `-1` means no limit.", nil, buildQuota}
	for _, q := range quotaFields() {
		quota.Settings = append(quota.Settings, FaultSetting{Name: q.name, Meaning: q.meaning})
	}
	return []FaultKind{
		quota,
		{"soft-delete", cloud, "Nova keeps deleted servers as SOFT_DELETED, until they are force-deleted.", []FaultSetting{
			{Name: "reclaim", Meaning: "how long", Default: "1h"},
		}, timed("reclaim", func(c *Condition, d time.Duration) { c.SoftDelete = d })},
		{"listing-lag", cloud, "Listings are late: new servers are missing, and deleted ones are shown.", []FaultSetting{
			{Name: "by", Meaning: "time", Required: true},
		}, timed("by", func(c *Condition, d time.Duration) { c.ListingLag = d })},
		{"cell-down", cloud, "The cell of all servers is unreachable: listings by tag lack them, and calls about them fail.", nil, changes(func(c *Condition) { c.CellDown = true })},
		{"clock", cloud, "The cloud's clock is wrong: the header Date, and the times that Nova and Keystone write.", []FaultSetting{
			{Name: "by", Meaning: "time ahead; negative: behind", Required: true},
		}, func(t *faultText, r *Rule) {
			d := t.offset("by")
			r.Condition = func(c *Condition) { c.Clock = d }
		}},
		{"legacy-endpoint", cloud, "The catalogue names Nova's `/v2/PROJECT`, which ignores microversions.", nil, changes(func(c *Condition) { c.LegacyEndpoint = true })},
	}
}

type quotaField struct {
	name, meaning string
	of            func(*Quota) *int
}

func quotaFields() []quotaField {
	return []quotaField{
		{"instances", "servers", func(q *Quota) *int { return &q.Instances }},
		{"cores", "VCPUs", func(q *Quota) *int { return &q.Cores }},
		{"ram", "MiB of RAM", func(q *Quota) *int { return &q.RAM }},
		{"ports", "ports", func(q *Quota) *int { return &q.Ports }},
		{"volumes", "volumes", func(q *Quota) *int { return &q.Volumes }},
		{"gigabytes", "GiB of volumes", func(q *Quota) *int { return &q.Gigabytes }},
		{"server-group-members", "servers of a server group", func(q *Quota) *int { return &q.ServerGroupMembers }},
	}
}

func buildQuota(t *faultText, r *Rule) {
	limits := map[string]int{}
	for _, field := range quotaFields() {
		if _, given := t.given[field.name]; given {
			limits[field.name] = t.limit(field.name)
		}
	}
	if len(limits) == 0 {
		t.wrong("set one of " + strings.Join(t.kind.names(), ", "))
	}
	project := r.Project
	r.Condition = func(c *Condition) {
		c.ChangeQuota(project, func(q *Quota) {
			for _, field := range quotaFields() {
				if limit, given := limits[field.name]; given {
					*field.of(q) = limit
				}
			}
		})
	}
}

// ErrFault reports a text that [ParseRule] cannot read.
var ErrFault = errors.New("no such fault")

// ParseRule reads a rule of one of the [FaultKinds]: KIND[:RATE][,SETTING=VALUE…].
// RATE is a share of the calls or servers, such as 10% or 0.1. A setting with a
// comma is quoted as in CSV: "message=a, b". Its errors wrap [ErrFault].
func ParseRule(text string) (Rule, error) {
	reader := csv.NewReader(strings.NewReader(text))
	reader.LazyQuotes = true
	fields, err := reader.Read()
	if err != nil || len(fields) == 0 {
		return Rule{}, fmt.Errorf("%w: %q; write KIND[:RATE][,SETTING=VALUE…]", ErrFault, text)
	}
	name, rate, rated := strings.Cut(fields[0], ":")
	kinds := FaultKinds()
	at := slices.IndexFunc(kinds, func(k FaultKind) bool { return k.Name == name })
	if at < 0 {
		return Rule{}, fmt.Errorf("%w: %q; %s", ErrFault, name, suggest(name, kindNames(kinds)))
	}
	t := &faultText{kind: kinds[at], given: map[string]string{}}
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
		return Rule{}, fmt.Errorf("%w: %s: %w", ErrFault, text, t.err)
	}
	return rule, nil
}

func kindNames(kinds []FaultKind) []string {
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
func (k FaultKind) names() []string {
	names := make([]string, 0, len(k.Settings))
	for _, s := range k.Settings {
		names = append(names, s.Name)
	}
	return names
}

// faultText is a rule while it is read. The first mistake is kept.
type faultText struct {
	kind  FaultKind
	given map[string]string
	globs map[string]string // of servers, by field
	err   error
}

func (t *faultText) wrong(problem string) {
	if t.err == nil {
		t.err = errors.New(problem)
	}
}

func (t *faultText) rate(text string, rule *Rule) {
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
func (t *faultText) take(field string, rule *Rule) {
	key, value, found := strings.Cut(field, "=")
	known := t.kind.names()
	for _, setting := range CommonFaultSettings() {
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
func (t *faultText) match(value string, rule *Rule) {
	field, pattern, found := strings.Cut(value, ":")
	switch {
	case t.kind.Of == ScopeCloud && t.kind.Name != "quota":
		t.wrong(t.kind.Name + " takes no match: it happens to the whole cloud")
	case found && field == "project" && rule.Project == "":
		rule.Project = pattern
	case t.kind.Of == ScopeCloud:
		t.wrong(fmt.Sprintf("match=%s: write match=project:NAME", value))
	case rule.Operation != "", found && field == "project", field == "host" && rule.Host != "":
		t.wrong("match is given twice for one thing; write two faults")
	case t.kind.Of == ScopeCalls:
		rule.Operation = Operation(value)
		if !slices.ContainsFunc(Operations(), func(op Operation) bool { return matchesOperation(rule.Operation, op) }) {
			var known []string
			for _, op := range Operations() {
				known = append(known, string(op))
			}
			t.wrong(fmt.Sprintf("match=%s matches no operation; %s", value, suggest(value, known)))
		}
	case found && field == "host":
		rule.Host = pattern
	default:
		t.matchServer(value, field, pattern)
		rule.Server = t.selects
	}
}

// matchServer adds a pattern for one field of servers.
func (t *faultText) matchServer(value, field, pattern string) {
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

func (t *faultText) selects(info ServerInfo) bool {
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
func (t *faultText) common(rule *Rule) {
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
func (t *faultText) text(key string) string {
	value, given := t.given[key]
	if at := slices.Index(t.kind.names(), key); !given && at >= 0 {
		value = t.kind.Settings[at].Default
	}
	return value
}

func (t *faultText) status(key string) int {
	status, err := strconv.Atoi(t.text(key))
	if err != nil || status < http.StatusBadRequest || status > 599 {
		t.wrong(fmt.Sprintf("%s=%s: write an HTTP status from 400 to 599", key, t.text(key)))
	}
	return status
}

func (t *faultText) duration(key string) time.Duration {
	d := t.offset(key)
	if d <= 0 {
		t.wrong(fmt.Sprintf("%s=%s: write a time above 0", key, t.text(key)))
	}
	return d
}

func (t *faultText) offset(key string) time.Duration {
	d, err := time.ParseDuration(t.text(key))
	if err != nil {
		t.wrong(fmt.Sprintf("%s=%s: write a time with a unit, such as 2s", key, t.text(key)))
	}
	return d
}

func (t *faultText) count(key string) int {
	n, err := strconv.Atoi(t.text(key))
	if err != nil || n < 1 {
		t.wrong(fmt.Sprintf("%s=%s: write a whole number from 1", key, t.text(key)))
	}
	return n
}

func (t *faultText) countOrAll(key string) int {
	if t.text(key) == "all" {
		return Always
	}
	return t.count(key)
}

func (t *faultText) limit(key string) int {
	n, err := strconv.Atoi(t.text(key))
	if err != nil || n < Unlimited {
		t.wrong(fmt.Sprintf("%s=%s: write a whole number, or -1 for no limit", key, t.text(key)))
	}
	return n
}

func (t *faultText) number(key string) float64 {
	n, err := strconv.ParseFloat(t.text(key), 64)
	if err != nil || n <= 0 {
		t.wrong(fmt.Sprintf("%s=%s: write a number above 0", key, t.text(key)))
	}
	return n
}
