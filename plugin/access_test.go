package plugin_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

// TestAccessRulesArePublished is the other half of report 18: the guide has
// exactly the rules that TestAccessRulesSuffice holds to be enough.
func TestAccessRulesArePublished(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../docs/guides/openstack.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(guide), "<!-- access rules:")
	_, after, fenced := strings.Cut(after, "```json\n")
	block, _, closed := strings.Cut(after, "```")
	if !found || !fenced || !closed {
		t.Fatal("the guide has no list of access rules")
	}
	var published []plugin.AccessRule
	if err := json.Unmarshal([]byte(block), &published); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plugin.AccessRules(), published); diff != "" {
		t.Errorf("rules of the guide (-want +got):\n%s", diff)
	}
}
