package main

import (
	"context"
	"testing"

	"github.com/hashicorp/go-hclog"
	"gitlab.com/gitlab-org/fleeting/fleeting/provider"
)

// TestLife takes a server from nothing to a job and back to nothing.
func TestLife(t *testing.T) {
	ctx := context.Background()
	group := &Group{Name: "test", MaxSize: 2}
	if _, err := group.Init(ctx, hclog.NewNullLogger(), provider.Settings{}); err != nil {
		t.Fatal(err)
	}
	if n, err := group.Increase(ctx, 3); n != 2 || err != nil {
		t.Fatalf("Increase(3) = %d, %v; a group of 2 makes 2", n, err)
	}
	var ids []string
	list := func() map[string]provider.State {
		states := map[string]provider.State{}
		if err := group.Update(ctx, func(id string, state provider.State) { states[id] = state }); err != nil {
			t.Fatal(err)
		}
		return states
	}
	for id, state := range list() {
		ids = append(ids, id)
		if state != provider.StateCreating {
			t.Errorf("%s is %s at first", id, state)
		}
	}
	for _, id := range ids {
		if info, err := group.ConnectInfo(ctx, id); err != nil || info.ExternalAddr == "" {
			t.Errorf("ConnectInfo(%s) = %+v, %v", id, info, err)
		}
	}
	if gone, err := group.Decrease(ctx, ids); len(gone) != 2 || err != nil {
		t.Errorf("Decrease = %v, %v", gone, err)
	}
	list() // the last that is heard of them
	if left := list(); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestNameIsNeeded(t *testing.T) {
	if _, err := (&Group{}).Init(context.Background(), hclog.NewNullLogger(), provider.Settings{}); err == nil {
		t.Error("a group without a name was accepted")
	}
}
