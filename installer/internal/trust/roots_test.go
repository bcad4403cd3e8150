package trust_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/installer/internal/trust"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/trusttest"
)

// withoutRekor2 is the lab's trusted root as it was before its Rekor v2: as the
// public one that is built in lacks the public Rekor v2 logs.
func withoutRekor2(tb testing.TB, lab *trusttest.LabSamples) *trust.TrustedRoot {
	tb.Helper()
	var all map[string]any
	if err := json.Unmarshal(lab.TrustedRoot(), &all); err != nil {
		tb.Fatal(err)
	}
	logs, ok := all["tlogs"].([]any)
	if !ok || len(logs) < 2 {
		tb.Fatalf("logs: %v", all["tlogs"])
	}
	all["tlogs"] = slices.DeleteFunc(logs, func(log any) bool {
		return !strings.Contains(fmt.Sprint(log), labRekor1)
	})
	raw, err := json.Marshal(all)
	if err != nil {
		tb.Fatal(err)
	}
	roots, err := trust.LoadTrustedRoot(raw)
	if err != nil {
		tb.Fatal(err)
	}
	return roots
}

// labRekor1 is the address of the lab's Rekor v1.
const labRekor1 = "127.0.0.1:5730"
