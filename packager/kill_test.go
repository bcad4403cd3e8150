package packager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/internal/ociregistry"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/registrytest"
	"github.com/radome-io/fleeting-plugin-openstack/internal/test/sampleplugin"
	"github.com/radome-io/fleeting-plugin-openstack/packager"
	"github.com/radome-io/fleeting-plugin-openstack/packager/dist"
)

// releaseJob is the variable with which this test's executable, started again,
// makes one release and nothing else, so that it can be killed.
const releaseJob = "PACKAGER_TEST_RELEASE"

// job is what a process is to release.
type job struct{ Dist, Repository, Version, Key, Temp string }

func releaseAlone(encoded string) error {
	var j job
	if err := json.Unmarshal([]byte(encoded), &j); err != nil {
		return err
	}
	key, err := os.ReadFile(j.Key)
	if err != nil {
		return err
	}
	signer, err := packager.KeySigner(key, []byte("secret"), packager.SigningServices{})
	if err != nil {
		return err
	}
	ctx := context.Background()
	scanned, err := dist.Scan(ctx, j.Dist, dist.Options{})
	if err != nil {
		return err
	}
	v, err := packager.ParseVersion(j.Version)
	if err != nil {
		return err
	}
	client, err := ociregistry.NewClient(ociregistry.Options{Retries: 3, FirstWait: time.Millisecond})
	if err != nil {
		return err
	}
	repo, err := client.Repository(j.Repository)
	if err != nil {
		return err
	}
	_, err = packager.Release(ctx, scanned, v, repo, packager.ReleaseOptions{
		PackOptions: packager.PackOptions{Metadata: metadata(), Parallel: 1}, Signer: signer,
	})
	return err
}

// start runs a job in a process of its own.
func (j job) start(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), releaseJob+"="+string(encoded), "TMPDIR="+j.Temp)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKilledReleaseIsRunAgain kills the process at one request after the other,
// then runs it again: what is published is complete, and nothing is there twice.
// INTEROP C24: nothing is left in the folder for temporary files either.
func TestKilledReleaseIsRunAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	private, _, err := packager.GenerateKeyPair([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "cosign.key")
	sampleplugin.Write(t, key, private, 0o600)
	reg := registrytest.New(t)
	j := job{
		Dist: sampleplugin.Dist(t, "1.0.0", "linux/amd64"), Repository: reg.Host + "/calm", Version: "1.0.0",
		Key: key, Temp: t.TempDir(),
	}
	if err := j.start(t).Run(); err != nil {
		t.Fatal(err)
	}
	requests := len(reg.Gate.Requests())
	step := 13
	if *full {
		step = 1
	}
	for n := 0; n < requests; n += step {
		j.Repository = fmt.Sprintf("%s/killed%d", reg.Host, n)
		repo := repository(t, j.Repository)
		releasePlain(t, repo, "0.9.0")
		var running atomic.Pointer[os.Process]
		// The request that is lost with its sender arrives in every other run.
		reg.Gate.Break(t, registrytest.Fault{Skip: n, Times: 1, Reset: n%2 == 0, Before: func() { _ = running.Load().Kill() }})
		cmd := j.start(t)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running.Store(cmd.Process)
		err := cmd.Wait()
		reg.Gate.Mend()
		if err == nil {
			t.Fatalf("request %d: the process was not killed", n)
		}
		complete(t, repo, fmt.Sprintf("killed at request %d", n))
		if err := j.start(t).Run(); err != nil {
			t.Errorf("killed at request %d, run again: %v", n, err)
			continue
		}
		complete(t, repo, fmt.Sprintf("killed at request %d, run again", n))
		report, err := packager.Inspect(t.Context(), repo, "latest", packager.InspectOptions{})
		if err != nil {
			t.Errorf("killed at request %d, run again: %v", n, err)
			continue
		}
		count := map[string]int{}
		for _, s := range report.Signatures {
			count[s.Subject+" "+s.Form]++
		}
		for _, a := range report.Attestations {
			count[a.Subject+" "+a.Form+" "+a.PredicateType]++
		}
		want := map[string]int{}
		for _, subject := range []string{"index", "linux/amd64"} {
			for _, form := range []string{"tag", "bundle"} {
				for _, predicate := range []string{"", " " + packager.PredicateSPDX, " " + packager.PredicateCycloneDX} {
					want[subject+" "+form+predicate] = 1
				}
			}
		}
		if diff := cmp.Diff(want, count); diff != "" {
			t.Errorf("killed at request %d, run again: evidence (-want +got):\n%s", n, diff)
		}
	}
	if left, err := os.ReadDir(j.Temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}
