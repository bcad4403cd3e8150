// Package cloud is what the services of the simulator share: one lock, one
// clock, the projects with their quotas, the faults, and how a call is
// answered, recorded and lost.
//
// It knows no service. Each one adds its calls with [Cloud.Serve].
package cloud

import (
	"cmp"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim/fault"
)

// Project owns servers and all else.
type Project struct {
	// ID is chosen when empty.
	ID, Name string
	Quota    fault.Quota
}

// Auth is who makes a call. Its project is empty, but not nil, for a token
// without a scope.
type Auth struct {
	UserID  string
	Project *Project
}

// Identity knows the tokens.
type Identity interface {
	// Authenticate returns who makes a call, or the refusal of its token.
	Authenticate(c *Call) (*Auth, error)
	// ProjectOf returns the name of the project of a token; empty without one.
	ProjectOf(token string) string
}

// Options are what a cloud needs.
type Options struct {
	// Now is the clock.
	Now func() time.Time
	// Logger gets a line per call.
	Logger *slog.Logger
	// Seed makes random choices the same when it is the same and not 0.
	Seed uint64
}

// Cloud is the ground that the services of one simulator stand on. It is an
// [net/http.Handler]; serve it on loopback only. Methods that take the lock
// may be called concurrently; the others say that the lock is held.
type Cloud struct {
	// Logger gets a line per call.
	Logger *slog.Logger
	// Identity answers for tokens; set before the first call.
	Identity Identity
	// Projects are those of the seed.
	Projects []*Project
	// Condition is what the cloud is like at present: what methods have set,
	// and the rules that hold. The lock is held.
	Condition fault.Condition
	// Random is the source of all random choices. The lock is held.
	Random *rand.Rand

	clock func() time.Time
	mux   *http.ServeMux
	names map[string]*Service

	mu      sync.Mutex
	present time.Time // the time of the event or call at work
	agenda  []event   // by time
	rules   fault.Rules
	set     fault.Condition // by methods
	calls   []Record
}

// New makes a cloud without services.
func New(options Options) *Cloud {
	seed := options.Seed
	if seed == 0 {
		seed = rand.Uint64()
	}
	random := rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	return &Cloud{
		Logger: options.Logger, Random: random, clock: options.Now, present: options.Now(),
		mux: http.NewServeMux(), names: map[string]*Service{}, rules: fault.NewRules(options.Now, random.Float64),
	}
}

// Do runs a function with the lock held, after all that was due.
func (c *Cloud) Do(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance()
	do()
}

// AddProject adds a project of the seed.
func (c *Cloud) AddProject(p Project) {
	p.ID = c.OrHex(p.ID)
	c.Projects = append(c.Projects, &p)
}

// ProjectID finds a project by its name; an unknown name gives an ID that no project has.
func (c *Cloud) ProjectID(name string) string {
	for _, p := range c.Projects {
		if p.Name == name {
			return p.ID
		}
	}
	return "00000000000000000000000000000000"
}

// Project finds a project by its ID.
func (c *Cloud) Project(id string) *Project {
	for _, p := range c.Projects {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// Quota is the quota of a project in the present condition. The lock is held.
func (c *Cloud) Quota(project *Project) fault.Quota {
	return c.Condition.Quota(project.Name, project.Quota)
}

// SetQuota changes the quota of a project, by its name.
func (c *Cloud) SetQuota(project string, change func(*fault.Quota)) (err error) {
	c.Do(func() {
		p := c.Project(c.ProjectID(project))
		if p == nil {
			err = fmt.Errorf("openstacksim: no project %q", project)
			return
		}
		change(&p.Quota)
	})
	return err
}

// SetCellDown makes the cell of all servers unreachable, or reachable again:
// listings by filter leave them out, and their calls fail.
func (c *Cloud) SetCellDown(down bool) { c.Do(func() { c.set.CellDown = down }) }

// SetListingLag lets listings show new servers, and stop showing deleted
// ones, so much later than a GET.
func (c *Cloud) SetListingLag(lag time.Duration) { c.Do(func() { c.set.ListingLag = lag }) }

// Inject adds a rule; the function returned takes it away again. Of several
// rules that meet a call, the one injected first acts, and delays add up. All
// that meet a server change its fate, one after the other.
func (c *Cloud) Inject(rule fault.Rule) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.rules.Add(rule)
	return func() { c.Withdraw(id) }
}

// Injected returns the rules that are not over, oldest first.
func (c *Cloud) Injected() []fault.Injected {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rules.List()
}

// Withdraw takes a rule away and reports whether it was there.
func (c *Cloud) Withdraw(id int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rules.Remove(id)
}

// FailNth injects a fault for the n-th call of the operation from now, counted from 1.
func (c *Cloud) FailNth(op fault.Operation, n int, what fault.Fault) {
	c.Inject(fault.Rule{Operation: op, Skip: n - 1, Times: 1, Fault: what})
}

// Decide lets the rules change the fate of a server. The lock is held.
func (c *Cloud) Decide(fate *fault.Fate, info fault.ServerInfo) { c.rules.Decide(fate, info) }

// NewID makes a random UUID. The lock is held.
func (c *Cloud) NewID() string {
	high, low := c.Random.Uint64(), c.Random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		high>>32, high>>16&0xffff, high&0xfff, low>>48&0x3fff|0x8000, low&0xffffffffffff)
}

// NewHex makes a random identifier as Keystone writes them. The lock is held.
func (c *Cloud) NewHex() string {
	return fmt.Sprintf("%016x%016x", c.Random.Uint64(), c.Random.Uint64())
}

// OrID is an ID, or a new one for an empty one. The lock is held.
func (c *Cloud) OrID(id string) string { return cmp.Or(id, c.NewID()) }

// OrHex is an identifier, or a new one for an empty one. The lock is held.
func (c *Cloud) OrHex(id string) string { return cmp.Or(id, c.NewHex()) }
