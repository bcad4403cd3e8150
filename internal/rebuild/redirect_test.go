package rebuild_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/rebuild"
)

// TestCloneKeepsItsProtocol: a repository does not choose in which way it is
// fetched, so that https stays https.
func TestCloneKeepsItsProtocol(t *testing.T) {
	t.Parallel()
	var asked atomic.Bool
	other := httptest.NewUnstartedServer(http.NotFoundHandler())
	other.Config.ConnState = func(net.Conn, http.ConnState) { asked.Store(true) }
	other.StartTLS()
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/repository/info/refs", http.StatusFound))
	t.Cleanup(server.Close)

	origin := rebuild.Origin{Repository: server.URL + "/repository", Revision: strings.Repeat("0", 40)}
	if _, err := origin.Clone(t.Context(), filepath.Join(t.TempDir(), "source")); !errors.Is(err, rebuild.ErrFetch) {
		t.Errorf("got %v, want %v", err, rebuild.ErrFetch)
	}
	if asked.Load() {
		t.Error("a redirect changed the protocol")
	}
}
