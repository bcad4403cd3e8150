package plugin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/radome-io/fleeting-plugin-openstack/plugin"
)

const minimal = `{"cloud": "c", "name": "runner", "server": {"flavor": "f", "image": "i", "networks": ["n"]}}`

// with merges a JSON object into the minimal configuration.
func with(t *testing.T, change string) []byte {
	t.Helper()
	var base, top map[string]any
	for raw, into := range map[string]*map[string]any{minimal: &base, change: &top} {
		if err := json.Unmarshal([]byte(raw), into); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range top {
		if inner, ok := value.(map[string]any); ok && key == "server" {
			server, _ := base["server"].(map[string]any)
			maps.Copy(server, inner)
		} else {
			base[key] = value
		}
	}
	raw, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	config, err := plugin.ParseConfig([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{config.Tag, config.AddressFamily, config.BuildTimeout.String(), config.DeleteTimeout.String(), config.MaxParallelCreates == nil, config.Server.ConfigDrive}
	want := []any{"fleeting:runner", "ipv4", "15m0s", "10m0s", true, false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestConfigRefusals(t *testing.T) {
	t.Parallel()
	tags := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%q", fmt.Sprintf("t%d", i)))
		}
		return strings.Join(all, ",")
	}
	metadata := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"k%d":"v"`, i))
		}
		return strings.Join(all, ",")
	}
	for _, row := range []struct {
		name, change, key, says string // no key: accepted
	}{
		{name: "name of 51 with the default tag", change: `{"name": "` + strings.Repeat("a", 51) + `"}`},
		{"name of 52 with the default tag", `{"name": "` + strings.Repeat("a", 52) + `"}`, "name", "51"},
		{name: "name of 54 with a tag", change: `{"tag": "t", "name": "` + strings.Repeat("a", 54) + `"}`},
		{"name of 55", `{"tag": "t", "name": "` + strings.Repeat("a", 55) + `"}`, "name", "54"},
		{"upper case name", `{"name": "Runner"}`, "name", "lowercase"},
		{"no name", `{"name": ""}`, "name", "required"},
		{"tag with a comma", `{"tag": "a,b"}`, "tag", "comma"},
		{"tag with a slash", `{"tag": "a/b"}`, "tag", "/"},
		{name: "tag of 60", change: `{"tag": "` + strings.Repeat("t", 60) + `"}`},
		{"tag of 61", `{"tag": "` + strings.Repeat("t", 61) + `"}`, "tag", "60"},
		{"unknown key", `{"build_timout": "1m"}`, "build_timout", "did you mean build_timeout?"},
		{"unknown key in a section", `{"server": {"flavour": "x"}}`, "server.flavour", "did you mean server.flavor?"},
		{"unknown key like no other", `{"qqqqqqqqqqqqqqqqqq": 1}`, "qqqqqqqqqqqqqqqqqq", "these are:"},
		{"bare number as a duration", `{"build_timeout": 900}`, "build_timeout", `"15m"`},
		{"duration without a unit", `{"build_timeout": "15"}`, "build_timeout", "unit"},
		{"negative duration", `{"build_timeout": "-1m"}`, "build_timeout", "positive"},
		{"no time at all", `{"build_timeout": "0s"}`, "build_timeout", "positive"},
		{"no time to delete", `{"delete_timeout": "0s"}`, "delete_timeout", "positive"},
		{"parallel creates in words", `{"max_parallel_creates": "ten"}`, "max_parallel_creates", "a whole number, not a string"},
		{"no parallel creates", `{"max_parallel_creates": 0}`, "max_parallel_creates", "100"},
		{name: "empty address family", change: `{"address_family": ""}`},
		{"key outside its section", `{"key_name": "k"}`, "key_name", "section server"},
		{"wrong type", `{"cloud": 5}`, "cloud", "a string, not a number"},
		{"list for a string", `{"server": {"image": ["a"]}}`, "server.image", "a string, not a list"},
		{"string for a list", `{"server": {"networks": "n"}}`, "server.networks", "a list of strings, not a string"},
		{"string for a section", `{"server": "x"}`, "server", "section"},
		{"volume type alone", `{"server": {"volume_type": "ssd"}}`, "server.volume_type", "server.volume_size"},
		{"negative volume", `{"server": {"volume_size": -1}}`, "server.volume_size", "positive"},
		{name: "volume as TOML 1.0", change: `{"server": {"volume_size": 10}}`},
		{"both user data", `{"server": {"user_data": "a", "user_data_file": "b"}}`, "server.user_data_file", "excludes"},
		{"host in the zone", `{"server": {"availability_zone": "nova:host1"}}`, "server.availability_zone", "host"},
		{"two networks", `{"server": {"networks": ["a", "b"]}}`, "address_network", "several"},
		{name: "two networks and a choice", change: `{"address_network": "b", "server": {"networks": ["a", "b"]}}`},
		{"network twice", `{"address_network": "a", "server": {"networks": ["a", "a"]}}`, "server.networks", "twice"},
		{"no networks", `{"server": {"networks": []}}`, "server.networks", "required"},
		{"address family", `{"address_family": "ipx"}`, "address_family", "ipv4 or ipv6"},
		{name: "49 tags", change: `{"server": {"tags": [` + tags(49) + `]}}`},
		{"50 tags", `{"server": {"tags": [` + tags(50) + `]}}`, "server.tags", "49"},
		{"the group's tag", `{"server": {"tags": ["fleeting:runner"]}}`, "server.tags", "own"},
		{"tag rules hold for all", `{"server": {"tags": ["a/b"]}}`, "server.tags", "/"},
		{name: "126 metadata", change: `{"server": {"metadata": {` + metadata(126) + `}}}`},
		{"127 metadata", `{"server": {"metadata": {` + metadata(127) + `}}}`, "server.metadata", "126"},
		{"metadata key", `{"server": {"metadata": {"a/b": "c"}}}`, "server.metadata", "a/b"},
		{"metadata value of 256", `{"server": {"metadata": {"a": "` + strings.Repeat("v", 256) + `"}}}`, "server.metadata", "255"},
		{name: "metadata value of 255", change: `{"server": {"metadata": {"a": "` + strings.Repeat("v", 255) + `"}}}`},
		{"our metadata key", `{"server": {"metadata": {"fleeting:group": "x"}}}`, "server.metadata", "own"},
		{"parallel creates", `{"max_parallel_creates": 101}`, "max_parallel_creates", "100"},
		{"parallel deletes", `{"max_parallel_deletes": 0}`, "max_parallel_deletes", "1 to 100"},
		{"calls", `{"max_calls_per_second": 1001}`, "max_calls_per_second", "1 to 1000"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, err := plugin.ParseConfig(with(t, row.change))
			if row.key == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var config *plugin.ConfigError
			if !errors.As(err, &config) {
				t.Fatalf("got %v, want a ConfigError", err)
			}
			if len(config.Problems) != 1 || config.Problems[0].Key != row.key || !strings.Contains(config.Problems[0].Text, row.says) {
				t.Errorf("problems: %+v; want one about %s that says %q", config.Problems, row.key, row.says)
			}
		})
	}
}

func TestConfigReportsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := plugin.ParseConfig([]byte(`{"nane": "x", "tag": 1, "build_timeout": 5, "server": {"flavor": "", "imge": "i", "volume_type": "x"}}`))
	var config *plugin.ConfigError
	if !errors.As(err, &config) {
		t.Fatal(err)
	}
	var keys []string
	for _, p := range config.Problems {
		keys = append(keys, p.Key)
	}
	want := []string{
		"build_timeout", "nane", "server.imge", "tag", "cloud", "name",
		"server.flavor", "server.image", "server.networks", "server.volume_type",
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s\n%v", diff, err)
	}
}

func TestConfigQuotesNoValues(t *testing.T) {
	t.Parallel()
	_, err := plugin.ParseConfig([]byte(`{"server": "hunter2", "cloud": ["hunter2"], "server.user_data": "hunter2"}`))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("an error that quotes what may be a secret: %v", err)
	}
}

func TestNoConfigSaysWhatIsRequired(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"null", "{}"} {
		err := json.Unmarshal([]byte(raw), plugin.New())
		for _, key := range []string{"cloud", "name", "server.flavor", "server.image", "server.networks"} {
			if err == nil || !strings.Contains(err.Error(), key+": is required") {
				t.Errorf("%s: got %v, want that %s is required", raw, err, key)
			}
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(`{"server": {"metadata": {"a": 1}}, "x": null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := plugin.ParseConfig(raw)
		if err != nil {
			return
		}
		if config.Cloud == "" || config.Name == "" || config.Server.Flavor == "" || len(config.Server.Networks) == 0 {
			t.Errorf("accepted without what is required: %+v", config)
		}
	})
}

func ExampleParseConfig() {
	_, err := plugin.ParseConfig([]byte(`{"cloud": "mycloud", "name": "runner", "build_timeout": 15,
		"server": {"flavour": "m1.large", "flavor": "m1.large", "image": "Ubuntu 24.04", "networks": ["public"]}}`))
	fmt.Println(err)
	// Output:
	// plugin_config has 2 mistakes:
	//   build_timeout: must be a string with a unit, such as "15m" or "90s", not 15
	//   server.flavour: is no setting; did you mean server.flavor?
}

// TestLoginFromTheEnvironment needs no cloud, and excludes what names one.
func TestLoginFromTheEnvironment(t *testing.T) {
	t.Parallel()
	const server = `"name": "runner", "server": {"flavor": "f", "image": "i", "networks": ["n"]}`
	config, err := plugin.ParseConfig([]byte(`{"auth_from_env": true, ` + server + `}`))
	if err != nil || config.Cloud != "envvars" {
		t.Errorf("cloud %q, %v", config.Cloud, err)
	}
	for extra, says := range map[string]string{
		`"auth_from_env": true, "cloud": "mine"`:           "cloud: is excluded by auth_from_env",
		`"auth_from_env": true, "clouds_config": "x.yaml"`: "clouds_config: is excluded by auth_from_env",
		`"auth_from_env": false`:                           "cloud: is required",
	} {
		if _, err := plugin.ParseConfig([]byte(`{` + extra + `, ` + server + `}`)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", extra, err, says)
		}
	}
}
