package fault

import (
	"slices"
	"strings"
	"time"
)

// Kind is a kind of fault that [Parse] reads.
type Kind struct {
	Name string
	// Of is what it happens to.
	Of Scope
	// Effect says what goes wrong.
	Effect string
	// Settings are those of the kind, beside the ones that every kind has.
	Settings []Setting

	build func(*reader, *Rule)
}

// Scope is what a kind of fault happens to.
type Scope string

// The scopes of faults.
const (
	ScopeCalls   Scope = "calls"
	ScopeServers Scope = "servers"
	ScopeCloud   Scope = "cloud"
)

// Setting is one setting of a fault.
type Setting struct {
	Name, Meaning string
	// Default is what holds if it is omitted; empty means that it is required,
	// or changes nothing.
	Default  string
	Required bool
}

// CommonSettings are those that kinds of every scope have; times, skip and
// every count calls or servers.
func CommonSettings() []Setting {
	return []Setting{
		{Name: "match", Meaning: "what it happens to; can be given several times"},
		{Name: "skip", Meaning: "how many calls or servers pass first"},
		{Name: "every", Meaning: "meets each n-th call or server only"},
		{Name: "times", Meaning: "ends the fault after so many"},
		{Name: "after", Meaning: "begins so long after it is set"},
		{Name: "for", Meaning: "ends so long after it began"},
	}
}

// Kinds lists the kinds of faults, those of one scope together.
func Kinds() []Kind {
	return slices.Concat(callFaults(), serverFaults(), cloudFaults())
}

func callFaults() []Kind {
	const calls = ScopeCalls
	return []Kind{
		{"error", calls, "The service refuses the call in its own words. Nothing is done.", []Setting{
			{Name: "status", Meaning: "HTTP status", Default: "503"},
			{Name: "message", Meaning: "the service's words", Default: "The service is temporarily unavailable."},
			{Name: "retry-after", Meaning: "seconds, or an HTTP date, in the header of that name"},
		}, func(t *reader, r *Rule) {
			r.Fault = Refuse(t.status("status"), t.text("message"))
			r.Fault.RetryAfter = t.text("retry-after")
		}},
		{"gateway", calls, "A proxy that has no service behind it answers with a page of HTML. Nothing is done.", []Setting{
			{Name: "status", Meaning: "HTTP status", Default: "503"},
			{Name: "retry-after", Meaning: "seconds, or an HTTP date, in the header of that name"},
		}, func(t *reader, r *Rule) {
			r.Fault = Gateway(t.status("status"))
			r.Fault.RetryAfter = t.text("retry-after")
		}},
		{"reset", calls, "The connection is closed. Nothing is done.", nil, func(_ *reader, r *Rule) { r.Fault = Reset() }},
		{"hang", calls, "Nothing is done, and no answer comes until the client gives up.", nil, func(_ *reader, r *Rule) { r.Fault = Hang() }},
		{"lost", calls, "The call is carried out, and its answer is lost.", []Setting{
			{Name: "answer", Meaning: "what the client sees: `reset`, `hang`, `truncated`, or the status of a proxy's page", Default: "reset"},
		}, buildLost},
		{"delay", calls, "The call takes longer.", []Setting{
			{Name: "by", Meaning: "time", Required: true},
		}, func(t *reader, r *Rule) { r.Fault = Delay(t.duration("by")) }},
		{"rate-limit", calls, "Calls beyond a rate of each project are answered with 429.", []Setting{
			{Name: "calls", Meaning: "calls a second that pass", Required: true},
			{Name: "burst", Meaning: "calls that pass at once", Default: "1"},
			{Name: "retry-after", Meaning: "seconds, or an HTTP date, in the header of that name", Default: "1"},
		}, func(t *reader, r *Rule) {
			r.PerSecond, r.Burst = t.number("calls"), t.count("burst")
			r.Fault = RateLimited(t.text("retry-after"))
		}},
	}
}

func buildLost(t *reader, r *Rule) {
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

func serverFaults() []Kind {
	const servers = ScopeServers
	simple := func(name, effect string, change func(*Fate)) Kind {
		return Kind{name, servers, effect, nil, func(_ *reader, r *Rule) {
			r.Fate = func(f *Fate, _ ServerInfo) { change(f) }
		}}
	}
	timed := func(name, effect, setting, meaning string, change func(*Fate, time.Duration)) Kind {
		return Kind{name, servers, effect, []Setting{{Name: setting, Meaning: meaning, Required: true}}, func(t *reader, r *Rule) {
			d := t.duration(setting)
			r.Fate = func(f *Fate, _ ServerInfo) { change(f, d) }
		}}
	}
	return []Kind{
		{"build-error", servers, "The build ends in ERROR.", []Setting{
			{Name: "message", Meaning: "why, after `Build of instance ID aborted:`", Default: "Failed to allocate the network(s), not rescheduling."},
		}, func(t *reader, r *Rule) {
			message := t.text("message")
			r.Fate = func(f *Fate, info ServerInfo) { f.Fault = "Build of instance " + info.ID + " aborted: " + message }
		}},
		simple("no-valid-host", "The scheduler finds no host, and the server ends in ERROR.", func(f *Fate) { f.Fault, f.Hostless = NoValidHost, true }),
		simple("stuck-building", "The server stays in BUILD.", func(f *Fate) { f.StuckBuilding = true }),
		timed("slow-build", "The build takes another time.", "time", "from the create to ACTIVE", func(f *Fate, d time.Duration) { f.BuildTime = d }),
		timed("power-off", "The guest shuts itself down.", "uptime", "time that it is ACTIVE", func(f *Fate, d time.Duration) { f.PowerOffAfter = d }),
		{"status", servers, "Nova shows another status once the server has a host, whatever becomes of it.", []Setting{
			{Name: "status", Meaning: "such as `UNKNOWN`", Required: true},
		}, func(t *reader, r *Rule) {
			status := t.text("status")
			r.Fate = func(f *Fate, _ ServerInfo) { f.Status = status }
		}},
		simple("no-address", "Nova shows no addresses of the server.", func(f *Fate) { f.Addressless = true }),
		simple("unreadable", "A GET of the server answers 500, and listings lack it.", func(f *Fate) { f.Unreadable = true }),
		timed("unlisted", "Listings show the server late.", "by", "time", func(f *Fate, d time.Duration) { f.HiddenFor = d }),
		timed("not-found", "A GET of the new server answers 404 at first.", "by", "time", func(f *Fate, d time.Duration) { f.MissingFor = d }),
		simple("admin-lock", "An administrator locks the server, so that its owner cannot delete it.", func(f *Fate) { f.AdminLock = true }),
		simple("stuck-deleting", "The server stays in the task state deleting until it is force-deleted.", func(f *Fate) { f.StuckDeleting = true }),
		{"delete-ignored", servers, "Deletions, forced ones too, are accepted without effect.", []Setting{
			{Name: "deletions", Meaning: "how many", Default: "all"},
		}, func(t *reader, r *Rule) {
			n := t.countOrAll("deletions")
			r.Fate = func(f *Fate, _ ServerInfo) { f.IgnoreDeletes = n }
		}},
		{"delete-error", servers, "Deletions end in ERROR.", []Setting{
			{Name: "deletions", Meaning: "how many", Default: "1"},
		}, func(t *reader, r *Rule) {
			n := t.countOrAll("deletions")
			r.Fate = func(f *Fate, _ ServerInfo) { f.FailDeletes = n }
		}},
		timed("lingering", "Listings show the deleted server as DELETED, without metadata, for a while.", "by", "time", func(f *Fate, d time.Duration) { f.LingersFor = d }),
		simple("bare", "While the server is being deleted, Nova shows it without metadata.", func(f *Fate) { f.Bare = true }),
		simple("ghost", "Listings go on showing the deleted server, while calls that name it answer 404.", func(f *Fate) { f.Ghost = true }),
	}
}

func cloudFaults() []Kind {
	const cloud = ScopeCloud
	changes := func(change func(*Condition)) func(*reader, *Rule) {
		return func(_ *reader, r *Rule) { r.Condition = change }
	}
	timed := func(setting string, change func(*Condition, time.Duration)) func(*reader, *Rule) {
		return func(t *reader, r *Rule) {
			d := t.duration(setting)
			r.Condition = func(c *Condition) { change(c, d) }
		}
	}
	quota := Kind{"quota", cloud, "The project may have less, or more, than at the start. `-1` means no limit.", nil, buildQuota}
	for _, q := range quotaFields() {
		quota.Settings = append(quota.Settings, Setting{Name: q.name, Meaning: q.meaning})
	}
	return []Kind{
		quota,
		{"soft-delete", cloud, "Nova keeps deleted servers as SOFT_DELETED, until they are force-deleted.", []Setting{
			{Name: "reclaim", Meaning: "how long", Default: "1h"},
		}, timed("reclaim", func(c *Condition, d time.Duration) { c.SoftDelete = d })},
		{"listing-lag", cloud, "Listings are late: new servers are missing, and deleted ones are shown.", []Setting{
			{Name: "by", Meaning: "time", Required: true},
		}, timed("by", func(c *Condition, d time.Duration) { c.ListingLag = d })},
		{"cell-down", cloud, "The cell of all servers is unreachable: listings by tag lack them, and calls about them fail.", nil, changes(func(c *Condition) { c.CellDown = true })},
		{"clock", cloud, "The cloud's clock is wrong: the header Date, and the times that Nova and Keystone write.", []Setting{
			{Name: "by", Meaning: "time ahead; negative: behind", Required: true},
		}, func(t *reader, r *Rule) {
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

func buildQuota(t *reader, r *Rule) {
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
		c.quotas = append(c.quotas, quotaChange{project, func(q *Quota) {
			for _, field := range quotaFields() {
				if limit, given := limits[field.name]; given {
					*field.of(q) = limit
				}
			}
		}})
	}
}
