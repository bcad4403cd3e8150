package contract

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/openstacksim"
)

// TestSimulator runs every case on the simulator and compares with what the
// real services answered.
func TestSimulator(t *testing.T) {
	t.Parallel()
	compareSimulator(t, Cases())
}

// TestSimulatorThatSoftDeletes does so for the cases of such a cloud.
func TestSimulatorThatSoftDeletes(t *testing.T) {
	t.Parallel()
	compareSimulator(t, SoftDeleteCases(), "soft-delete")
}

func compareSimulator(t *testing.T, cases []Case, faults ...string) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			want := golden(t, c.Name)
			synctest.Test(t, func(t *testing.T) {
				got := onSimulator(t, c, faults)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the simulator answers otherwise (-real +simulator):\n%s", diff)
				}
			})
		})
	}
}

func onSimulator(t *testing.T, c Case, faults []string) []Exchange {
	t.Helper()
	sim, err := openstacksim.New(openstacksim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		rule, err := openstacksim.ParseRule(fault)
		if err != nil {
			t.Fatal(err)
		}
		sim.Inject(rule)
	}
	clouds, err := ParseClouds(sim.CloudsYAML("http://simulator"))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: sim.Transport()}
	cloud, err := Connect(t.Context(), client, clouds[openstacksim.CloudPassword], clouds[openstacksim.CloudTiny], clouds[openstacksim.CloudCredential])
	if err != nil {
		t.Fatal(err)
	}
	return record(t.Context(), t, cloud, c)
}

// record runs a case and gives its transcript the way it would come from a file.
func record(ctx context.Context, t *testing.T, cloud *Cloud, c Case) []Exchange {
	t.Helper()
	encoded, err := encode(Record(ctx, cloud, c, t.Fatalf))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, encoded)
}

func goldenFile(name string) string {
	return filepath.Join("testdata", "transcripts", name+".json")
}

func golden(t *testing.T, name string) []Exchange {
	t.Helper()
	content, err := os.ReadFile(goldenFile(name))
	if err != nil {
		t.Fatalf("no transcript of the real services (make contract, with -update): %v", err)
	}
	return decode(t, content)
}

func decode(t *testing.T, content []byte) []Exchange {
	t.Helper()
	var transcript []Exchange
	if err := json.Unmarshal(content, &transcript); err != nil {
		t.Fatal(err)
	}
	return transcript
}
