package openstacksim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Simulator is one cloud. It is an [net/http.Handler]; serve it on loopback
// only. All methods may be called concurrently.
type Simulator struct {
	options Options
	router  *router
	shells  *shells

	mu       sync.Mutex
	present  time.Time // the time of the event or call at work
	agenda   agenda
	eventSeq uint64
	random   *rand.Rand
	rules    []*activeRule
	ruleSeq  int
	calls    []Call
	callSeq  uint64

	fates   func(n int, server ServerInfo) Fate
	created int // by users, for SetFates
	entered int
	set     Condition // by methods
	weather Condition // with the rules that hold at the present

	projects []*Project
	users    []*User
	tokens   map[string]*token

	flavors        []Flavor
	hosts          []Host
	images         []Image
	keyPairs       []KeyPair
	serverGroups   []*ServerGroup
	networks       []*network
	securityGroups []securityGroup
	volumeTypes    []string
	servers        map[string]*server
	serverOrder    []*server // oldest first
	ports          map[string]*port
	floatingIPs    map[string]*floatingIP
	volumes        map[string]*volume
}

// New makes a cloud. It fails only when the options contradict themselves or
// SSH cannot be served: [ErrSSHPort] where that is for its port.
func New(options Options) (*Simulator, error) {
	options = options.withDefaults()
	if _, ok := parseMicroversion(options.MaxMicroversion); !ok {
		return nil, fmt.Errorf("openstacksim: microversion %q: want 2.N", options.MaxMicroversion)
	}
	seed := options.RandomSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	s := &Simulator{
		options:     options,
		random:      rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15)),
		present:     options.Now(),
		tokens:      map[string]*token{},
		servers:     map[string]*server{},
		ports:       map[string]*port{},
		floatingIPs: map[string]*floatingIP{},
		volumes:     map[string]*volume{},
	}
	s.router = newRouter(s.routes())
	if err := s.plant(*options.Seed); err != nil {
		return nil, err
	}
	if options.SSH != nil {
		shells, err := newShells(*options.SSH, s.firstAddress(), s.mayLogin)
		if err != nil {
			return nil, err
		}
		s.shells = shells
	}
	return s, nil
}

// Close ends the SSH servers with what runs on them and removes their folders.
// A simulator without SSH has nothing to close.
func (s *Simulator) Close() error {
	if s.shells == nil {
		return nil
	}
	return s.shells.close()
}

// newID makes a random UUID. The lock is held.
func (s *Simulator) newID() string {
	high, low := s.random.Uint64(), s.random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		high>>32, high>>16&0xffff, high&0xfff, low>>48&0x3fff|0x8000, low&0xffffffffffff)
}

// newHex makes a random identifier as Keystone writes them. The lock is held.
func (s *Simulator) newHex() string {
	return fmt.Sprintf("%016x%016x", s.random.Uint64(), s.random.Uint64())
}
