//go:build contract

package contract

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the answers of the real services down")

// TestMain takes the lab down again if it was not up before.
func TestMain(m *testing.M) {
	state := os.Getenv("OPENSTACK_LAB_DIR")
	if state == "" {
		state = "/tmp/openstack-lab"
	}
	_, err := os.Stat(state)
	m.Run()
	if _, now := os.Stat(state); os.IsNotExist(err) && now == nil {
		if output, err := exec.CommandContext(context.Background(), "bash", filepath.Join(labFolder(), "down")).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "stopping the lab: %v\n%s", err, output)
		}
	}
}

// labFolder is where the scripts of the lab are.
func labFolder() string {
	if lab := os.Getenv("OPENSTACK_LAB"); lab != "" {
		return lab
	}
	return filepath.Join("..", "..", "..", "lab", "openstack")
}

// TestReal runs every case on the real services and compares with what they
// answered when it was written down.
func TestReal(t *testing.T) {
	compareReal(t, realCloud(t, labPath(t, labFolder())), Cases())
}

// TestRealThatSoftDeletes does so on another lab, whose Nova keeps deleted servers
// for an hour.
func TestRealThatSoftDeletes(t *testing.T) {
	env := []string{
		"OPENSTACK_LAB_DIR=" + filepath.Join(t.TempDir(), "lab"), "OPENSTACK_LAB_PORT_OFFSET=20000", "OPENSTACK_LAB_RECLAIM_SECONDS=3600",
	}
	t.Cleanup(func() {
		down := exec.CommandContext(context.WithoutCancel(t.Context()), "bash", filepath.Join(labFolder(), "down"))
		down.Env = append(os.Environ(), env...)
		if output, err := down.CombinedOutput(); err != nil {
			t.Errorf("stopping the lab: %v\n%s", err, output)
		}
	})
	compareReal(t, realCloud(t, labPath(t, labFolder(), env...)), SoftDeleteCases())
}

func compareReal(t *testing.T, cloud *Cloud, cases []Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			begin := time.Now()
			got := record(t.Context(), t, cloud, c)
			t.Logf("%d calls in %s", len(got), time.Since(begin).Round(time.Millisecond))
			if *update {
				write(t, c.Name, got)
			}
			if diff := cmp.Diff(golden(t, c.Name), got); diff != "" {
				t.Errorf("the real services answer otherwise than written down (-written +real):\n%s", diff)
			}
		})
	}
}

func write(t *testing.T, name string, transcript []Exchange) {
	t.Helper()
	encoded, err := encode(transcript)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(goldenFile(name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenFile(name), encoded, 0o644); err != nil {
		t.Fatal(err)
	}
}

// realCloud starts the lab, or finds it running, and logs in.
func realCloud(t *testing.T, cloudsFile string) *Cloud {
	t.Helper()
	clouds, err := ParseClouds(readLab(t, cloudsFile))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: 2 * time.Minute}
	cloud, err := Connect(t.Context(), client, clouds["lab"], clouds["lab-tiny"], clouds["lab-appcred"])
	if err != nil {
		t.Fatal(err)
	}
	sweep(t, cloud)
	return cloud
}

// sweep deletes what a run that was broken off left behind.
func sweep(t *testing.T, cloud *Cloud) {
	t.Helper()
	Record(t.Context(), cloud, Case{"sweep", func(s *Session) {
		for _, project := range []Access{cloud.main, cloud.tiny} {
			s.project = project
			for _, server := range s.Quiet(get, "compute", "/servers?name=^contract-", nil).List("servers") {
				s.Gone("/servers/" + text(server["id"]))
			}
		}
	}}, t.Fatalf)
}

func readLab(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// labPath runs the lab's script up, which only prints where its clouds.yaml is when
// the lab is running already. OPENSTACK_LAB is the folder of the lab.
func labPath(t *testing.T, lab string, env ...string) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(lab, "up")); err != nil {
		t.Fatalf("there is no lab with OpenStack's services, whose folder OPENSTACK_LAB names: %v", err)
	}
	command := exec.CommandContext(t.Context(), "bash", filepath.Join(lab, "up"))
	command.Env = append(os.Environ(), env...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		t.Fatalf("starting the lab in %s: %v\n%s", lab, err, output.String())
	}
	_, rest, found := strings.Cut(output.String(), "clouds.yaml:")
	if !found {
		t.Fatalf("the lab does not say where its clouds.yaml is:\n%s", output.String())
	}
	path, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	return path
}
