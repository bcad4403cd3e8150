package openstacksim_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// Other people's hands on a server, and what the API says afterwards.
func TestHandsOnAServer(t *testing.T) {
	t.Parallel()
	type state struct{ Status, Task, Fault any }
	for name, row := range map[string]struct {
		do   func(sim *openstacksim.Simulator) error
		want state
	}{
		"powered off": {func(sim *openstacksim.Simulator) error { return sim.PowerOff("one") }, state{"SHUTOFF", nil, nil}},
		"migrating":   {func(sim *openstacksim.Simulator) error { return sim.SetStatus("one", "MIGRATING") }, state{"MIGRATING", nil, nil}},
		"broken":      {func(sim *openstacksim.Simulator) error { return sim.Break("one", "host lost") }, state{"ERROR", nil, "host lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := newSimulator(t, openstacksim.Options{})
			id, err := sim.AddServer(openstacksim.ServerSpec{Name: "one", Tags: []string{"g1"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := row.do(sim); err != nil {
				t.Fatal(err)
			}
			shown := newClient(t, sim).server(id)
			got := state{shown["status"], shown["OS-EXT-STS:task_state"], object(shown["fault"])["message"]}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
	sim := newSimulator(t, openstacksim.Options{})
	if err := sim.Destroy("nobody"); err == nil {
		t.Error("a server that is not there was destroyed")
	}
}

func TestAdminLockHolds(t *testing.T) {
	t.Parallel()
	sim := newSimulator(t, openstacksim.Options{BuildTime: -1, DeleteTime: -1})
	c := newClient(t, sim)
	id, err := sim.AddServer(openstacksim.ServerSpec{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Lock("one", true); err != nil {
		t.Fatal(err)
	}
	c.want(http.StatusConflict, http.MethodDelete, "/compute/v2.1/servers/"+id, nil)
	c.want(http.StatusForbidden, http.MethodPost, "/compute/v2.1/servers/"+id+"/action", map[string]any{"unlock": nil})
	if err := sim.Lock("one", false); err != nil {
		t.Fatal(err)
	}
	c.want(http.StatusAccepted, http.MethodPost, "/compute/v2.1/servers/"+id+"/action", map[string]any{"unlock": nil})
	c.want(http.StatusNoContent, http.MethodDelete, "/compute/v2.1/servers/"+id, nil)
	c.want(http.StatusNotFound, http.MethodGet, "/compute/v2.1/servers/"+id, nil)
}

func TestFatesOfDeletions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		c := newClient(t, sim)
		for name, row := range map[string]struct {
			fate    openstacksim.Fate
			deletes int
		}{
			"plain":         {openstacksim.Fate{}, 1},
			"ignored twice": {openstacksim.Fate{IgnoreDeletes: 2}, 3},
			"fails once":    {openstacksim.Fate{FailDeletes: 1}, 2},
		} {
			id, err := sim.AddServer(openstacksim.ServerSpec{Name: name, Fate: row.fate})
			if err != nil {
				t.Fatal(err)
			}
			deletes := 0
			for ; ; deletes++ {
				if status, _, _ := c.send(http.MethodDelete, "/compute/v2.1/servers/"+id, nil); status == http.StatusNotFound {
					break
				}
				pass(time.Minute)
			}
			if deletes != row.deletes {
				t.Errorf("%s: gone after %d deletions, want %d", name, deletes, row.deletes)
			}
		}
	})
}

func TestImagesThatNotEverybodySees(t *testing.T) {
	t.Parallel()
	sim := newSimulator(t, openstacksim.Options{})
	c := newClient(t, sim)
	for _, image := range []openstacksim.Image{
		{Name: "own", Visibility: "private", Owner: openstacksim.DefaultProject},
		{Name: "others", Visibility: "private"},
		{Name: "hidden", Hidden: true},
		{Name: "community", Visibility: "community"},
		{Name: "offered", Visibility: "shared"},
		{Name: "accepted", Visibility: "shared", AcceptedBy: []string{openstacksim.DefaultProject}},
		{Name: "queued", Status: "queued"},
	} {
		image.Properties = map[string]string{"test": "yes"}
		sim.AddImage(image)
	}
	listed := func(query string) []string {
		var names []string
		for _, image := range list(c.want(http.StatusOK, http.MethodGet, "/image/v2/images?test=yes"+query, nil)["images"]) {
			names = append(names, text(image["name"]))
		}
		slices.Sort(names)
		return names
	}
	for query, want := range map[string][]string{
		"":                      {"accepted", "own", "queued"},
		"&status=active":        {"accepted", "own"},
		"&os_hidden=true":       {"hidden"},
		"&visibility=community": {"community"},
		"&visibility=all":       {"accepted", "community", "own", "queued"},
		"&visibility=private":   {"own"},
	} {
		if diff := cmp.Diff(want, listed(query)); diff != "" {
			t.Errorf("images%s (-want +got):\n%s", query, diff)
		}
	}
	if n := sim.RemoveImages("Ubuntu 24.04"); n != 2 {
		t.Errorf("%d images removed, want 2", n)
	}
}

func TestCredentialsComeAndGo(t *testing.T) {
	t.Parallel()
	sim := newSimulator(t, openstacksim.Options{})
	c := newClient(t, sim)
	login := func(id, secret string) (int, string) {
		status, header, _ := c.send(http.MethodPost, "/identity/v3/auth/tokens", map[string]any{"auth": map[string]any{"identity": map[string]any{
			"methods": []string{"application_credential"}, "application_credential": map[string]any{"id": id, "secret": secret},
		}}})
		return status, header.Get("X-Subject-Token")
	}
	id := sim.AddCredential(openstacksim.ApplicationCredential{
		Name: "narrow", Secret: "s", Project: openstacksim.DefaultProject,
		AccessRules: []openstacksim.AccessRule{
			{Service: "compute", Method: http.MethodGet, Path: "/v2.1/servers/*"},
			{Service: "image", Method: http.MethodGet, Path: "/v2/**"},
		},
	})
	status, token := login(id, "s")
	if status != http.StatusCreated {
		t.Fatalf("token: status %d", status)
	}
	c.token = token
	for path, want := range map[string]int{
		"/compute/v2.1/servers/detail": http.StatusOK,
		"/compute/v2.1/servers":        http.StatusUnauthorized,
		"/compute/v2.1/flavors":        http.StatusUnauthorized,
		"/image/v2/images":             http.StatusOK,
		"/network/v2.0/networks":       http.StatusUnauthorized,
	} {
		c.want(want, http.MethodGet, path, nil)
	}
	sim.RevokeCredential("narrow")
	c.want(http.StatusUnauthorized, http.MethodGet, "/compute/v2.1/servers/detail", nil)
	if status, _ := login(id, "s"); status != http.StatusNotFound {
		t.Errorf("token with a credential that is gone: status %d", status)
	}
	if err := sim.SetPassword(openstacksim.DefaultUser, "changed"); err != nil {
		t.Fatal(err)
	}
	sim.RevokeTokens()
	c.want(http.StatusUnauthorized, http.MethodGet, "/compute/v2.1/servers", nil)
}

func TestHangEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sim := newSimulator(t, openstacksim.Options{})
		sim.Inject(openstacksim.Rule{Operation: openstacksim.OpIdentityInfo, Fault: openstacksim.Hang()})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://simulator/identity/v3", nil)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		response, err := sim.Transport().RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("answered: %s", response.Status)
		}
		if took := time.Since(begin); took != time.Minute {
			t.Errorf("it hung for %s", took)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]openstacksim.Options{
		"microversion": {MaxMicroversion: "3.1"},
		"empty seed":   {Seed: &openstacksim.Seed{}},
		"bad key":      {SSH: &openstacksim.SSH{AuthorizedKeys: []string{"nonsense"}}},
	} {
		if sim, err := openstacksim.New(options); err == nil {
			t.Errorf("%s: accepted", name)
			_ = sim.Close()
		}
	}
}
