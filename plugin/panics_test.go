package plugin_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gitlab.com/gitlab-org/fleeting/fleeting/provider"

	sim "github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// panicky panics on each call while it is on.
type panicky struct {
	http.RoundTripper
	on atomic.Bool
}

func (p *panicky) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.on.Load() {
		panic("a bug")
	}
	return p.RoundTripper.RoundTrip(r)
}

func TestTrap08PanicsAreSurvived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, sim.Options{})
		transport := &panicky{RoundTripper: w.Transport()}
		group := w.startWith(t, transport)
		name := w.up(t, group, 1)[0]

		<-time.After(3 * time.Second) // a heartbeat believes what is fresher
		transport.on.Store(true)
		increase(t, group, 2, 2)
		if _, err := update(t, group); err == nil {
			t.Error("update during the panics: no error")
		}
		if err := group.Heartbeat(t.Context(), name); err == nil {
			t.Error("heartbeat during the panics: no error")
		}
		if _, err := group.Decrease(t.Context(), []string{name}); err != nil {
			t.Errorf("decrease during the panics: %v", err)
		}
		err := group.Update(t.Context(), func(string, provider.State) { panic("a bug of the host") })
		if err == nil {
			t.Error("update whose report panics: no error")
		}
		<-time.After(10 * time.Second)
		transport.on.Store(false)

		<-time.After(10 * time.Minute)
		for range 3 {
			states(t, group)
			<-time.After(time.Minute)
		}
		if got := count(states(t, group), provider.StateRunning); got != 2 || len(w.Snapshot().Servers) != 2 {
			t.Errorf("after the panics: %d running, %d servers, want 2 of each\n%s", got, len(w.Snapshot().Servers), w.log)
		}
		if w.log.lines("panic recovered") == 0 {
			t.Error("no panic was logged")
		}
	})
}

func TestCallsBeforeInitAndAfterShutdownFail(t *testing.T) {
	t.Parallel()
	group := plugin.New()
	for name, call := range map[string]func(context.Context) error{
		"Update":      func(ctx context.Context) error { return group.Update(ctx, nil) },
		"Increase":    func(ctx context.Context) error { _, err := group.Increase(ctx, 1); return err },
		"Decrease":    func(ctx context.Context) error { _, err := group.Decrease(ctx, []string{"a"}); return err },
		"ConnectInfo": func(ctx context.Context) error { _, err := group.ConnectInfo(ctx, "a"); return err },
		"Heartbeat":   func(ctx context.Context) error { return group.Heartbeat(ctx, "a") },
	} {
		if err := call(t.Context()); err == nil {
			t.Errorf("%s before Init: no error", name)
		}
	}
	for name, call := range map[string]func(context.Context, []string) ([]string, error){"Suspend": group.Suspend, "Resume": group.Resume} {
		if _, err := call(t.Context(), []string{"a"}); !errors.Is(err, provider.ErrCapabilityNotSupported) {
			t.Errorf("%s: got %v, want not supported", name, err)
		}
	}
	if err := group.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown before Init: %v", err)
	}
	var config *plugin.ConfigError
	if _, err := group.Init(t.Context(), (&logBook{}).logger(), settings()); !errors.As(err, &config) {
		t.Errorf("Init without a configuration: got %v, want a list of what is missing", err)
	}
}
