package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/radome-io/fleeting-plugin-openstack/plugin/internal/fleet"
)

// moody answers creations in every way that there is, and counts those under
// way.
type moody struct {
	*cloud
	random    *rand.Rand
	lock      sync.Mutex
	now, most int
	calm      bool
}

func (m *moody) Create(ctx context.Context, name string) (fleet.Created, error) {
	m.lock.Lock()
	m.now++
	m.most = max(m.most, m.now)
	mood, pause := m.random.IntN(8), time.Duration(m.random.IntN(3000))*time.Millisecond
	if m.calm {
		mood = 7
	}
	m.lock.Unlock()
	defer func() {
		m.lock.Lock()
		m.now--
		m.lock.Unlock()
	}()
	<-time.After(pause)
	switch mood {
	case 0:
		return fleet.Created{}, errors.New("quota exceeded")
	case 1:
		panic("creating")
	case 2:
		return fleet.Created{}, fmt.Errorf("%w: gateway", fleet.ErrDoubtful)
	case 3:
		if _, err := m.cloud.Create(ctx, name); err != nil {
			return fleet.Created{}, err
		}
		return fleet.Created{}, fmt.Errorf("%w: gateway", fleet.ErrDoubtful)
	case 4, 5:
		return fleet.Created{}, fleet.ErrBusy
	}
	return m.cloud.Create(ctx, name)
}

// TestWidthUnderMoods: whatever a cloud answers, creations under way keep to the
// bound, no slot is lost, and once it is calm everything comes up.
func TestWidthUnderMoods(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const bound, servers = 12, 60
				c := &moody{cloud: newCloud(), random: rand.New(rand.NewPCG(seed, 1))}
				set := settings(servers)
				set.Creates, set.BuildTimeout = fleet.Parallel{Start: 4, Most: 12}, 20*time.Hour
				group := begin(t, fleet.New(set, c, slog.New(slog.DiscardHandler), time.Now))
				for step := range 2000 {
					if step == 1000 {
						c.lock.Lock()
						c.calm = true
						c.lock.Unlock()
					}
					group.Increase(servers)
					report(t, group)
					<-time.After(10 * time.Second)
				}
				synctest.Wait()
				if c.most > bound {
					t.Errorf("%d creations under way, at most %d are allowed", c.most, bound)
				}
				states := map[fleet.State]int{}
				for _, state := range report(t, group) {
					states[state]++
				}
				if states[fleet.InUse] != servers || len(c.names()) != servers {
					t.Errorf("states %v, servers %d; want %d", states, len(c.names()), servers)
				}
			})
		})
	}
}

// slow takes each creation on after a minute, and counts those under way.
type slow struct {
	*cloud
	lock sync.Mutex
	now  int
}

func (s *slow) Create(ctx context.Context, name string) (fleet.Created, error) {
	s.count(1)
	defer s.count(-1)
	<-time.After(time.Minute)
	return s.cloud.Create(ctx, name)
}

// count adds to the number of creations under way and returns it.
func (s *slow) count(more int) int {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.now += more
	return s.now
}

// TestWidthGrowsWhileItIsUsed: creations that never filled the width do not say
// that the cloud bears a greater one; those that did, do.
func TestWidthGrowsWhileItIsUsed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ together, times, want int }{
		"one at a time":   {1, 20, 4},
		"less than full":  {3, 20, 4},
		"full":            {4, 1, 8},
		"full, then less": {4, 10, 8},
		"more than full":  {30, 1, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &slow{cloud: newCloud()}
				set := settings(200)
				set.Creates, set.BuildTimeout = fleet.Parallel{Start: 4, Most: 12}, 20*time.Hour
				group := begin(t, fleet.New(set, c, slog.New(slog.DiscardHandler), time.Now))
				for range row.times {
					group.Increase(row.together)
					<-time.After(time.Hour)
					report(t, group)
				}
				group.Increase(50)
				synctest.Wait()
				if got := c.count(0); got != row.want {
					t.Errorf("%d creations under way, want %d", got, row.want)
				}
			})
		})
	}
}
