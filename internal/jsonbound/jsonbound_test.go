package jsonbound_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/radome-io/fleeting-plugin-openstack/internal/jsonbound"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for text, values := range map[string]int{
		`{}`:                     2,
		`["",""]`:                3,
		`{"a":[1,2,{"b":null}]}`: 8,
		`"{[,:,:]}"`:             1,
		`"\"{[,:,:]}"`:           1,
		`["\\",","]`:             3,
		strings.Repeat(`[`, 60):  61,
	} {
		if err := jsonbound.Check([]byte(text), values); err != nil {
			t.Errorf("%s with %d values: %v", text, values, err)
		}
		if err := jsonbound.Check([]byte(text), values-1); !errors.Is(err, jsonbound.ErrTooLarge) {
			t.Errorf("%s with %d values: %v", text, values-1, err)
		}
	}
	if err := jsonbound.Check([]byte(strings.Repeat(`{"a":`, 65)), 1000); !errors.Is(err, jsonbound.ErrTooLarge) {
		t.Errorf("65 deep: %v", err)
	}
}

// FuzzCheck holds that no document of few values, by this count, has more of them
// when it is read.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,{"b":null}]}`, `[[],{},"\\\"",1e5]`, `{"a":"\u005c","b":"\"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		const limit = 10
		var v any
		if json.Unmarshal(document, &v) != nil || jsonbound.Check(document, limit) != nil {
			return
		}
		if n := count(v); n > limit {
			t.Errorf("%d values in %q", n, document)
		}
	})
}

func count(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += count(e)
		}
	case map[string]any:
		for _, e := range v {
			n += 1 + count(e)
		}
	}
	return n
}
