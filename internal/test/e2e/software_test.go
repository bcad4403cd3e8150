//go:build e2e

package e2e_test

import "testing"

// TestSoftware publishes our plugin and fleeting's dummy plugin once and gives
// them to every program that users have. The cases run one after the other, so
// that their seconds mean something.
func TestSoftware(t *testing.T) {
	install(t)
	leaveNoTrace(t)
	emulate(t)
	r := &report{}
	t.Cleanup(func() { r.print(t) })
	t.Run("documentation", func(t *testing.T) { testDocumentation(t, r) })
	l := newLab(t, r)
	t.Run("runner", func(t *testing.T) { testRunner(t, l) })
	t.Run("pin", func(t *testing.T) { testPin(t, l) })
	t.Run("podman", func(t *testing.T) { testPodman(t, l) })
	t.Run("pods", func(t *testing.T) { testPods(t, l) })
	t.Run("containerd", func(t *testing.T) { testContainerd(t, l) })
	t.Run("cri", func(t *testing.T) { testCRI(t, l) })
	t.Run("old-cri", func(t *testing.T) { testOldRuntime(t, l) })
	t.Run("umoci", func(t *testing.T) { testUmoci(t, l) })
	t.Run("skopeo", func(t *testing.T) { testSkopeo(t, l) })
	t.Run("packages", func(t *testing.T) { testPackages(t, l) })
}
