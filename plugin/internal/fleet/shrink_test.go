package fleet

import (
	"fmt"
	"log/slog"
	"testing"
	"time"
)

// TestMapsShrink: what an hour of many servers leaves is given back, because a map
// of Go keeps the memory of its largest size.
func TestMapsShrink(t *testing.T) {
	t.Parallel()
	now := time.Now()
	group := New(Settings{Name: "g", MaxSize: 1000, Random: func() float64 { return 0.5 }}, nil, slog.New(slog.DiscardHandler), func() time.Time { return now })
	group.mu.Lock()
	for i := range 10_000 {
		inst := &instance{name: fmt.Sprintf("g-%08d", i), id: fmt.Sprint(i), stage: live, last: WasDeleted}
		group.instances[inst.name] = inst
		group.bury(inst)
	}
	group.mu.Unlock()
	group.forget()
	if len(group.instances) != 0 || len(group.tombstones) != 10_000 {
		t.Fatalf("%d instances and %d names remembered, want 0 and 10000", len(group.instances), len(group.tombstones))
	}
	before := fmt.Sprintf("%p", group.tombstones)
	now = now.Add(tombstoneLife + time.Second)
	group.forget()
	same := fmt.Sprintf("%p", group.tombstones) == before
	if len(group.tombstones) != 0 || group.peak != 0 || same {
		t.Errorf("%d names remembered, peak %d, in the same map: %v", len(group.tombstones), group.peak, same)
	}
}
