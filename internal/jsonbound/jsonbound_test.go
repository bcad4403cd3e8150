package jsonbound_test

import (
	"bytes"
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

func TestExact(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		`{"a":1,"b":{"a":1,"a":2}}`:   true,
		`{"a":"b","b":"a"}`:           true,
		`{"a":"\"","b":["a","a"]}`:    true,
		`{"a" : 1 , "a" : 2}`:         false,
		`{"a":1,"\u0061":2}`:          false,
		`{"A":1}`:                     false,
		`{"\u212a":1}`:                false, // the sign for kelvin, which is a k in capitals
		`{"B":1}`:                     true,
		`["a","a"]`:                   true,
		`null`:                        true,
		`{"x\\":1,"a":{"x":1},"x":2}`: true,
	} {
		if err := jsonbound.Exact([]byte(text), "a", "k"); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzExact holds that an object without fields that are ambiguous has as many
// fields as it has names.
func FuzzExact(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,{"b":null}]}`, `{"a":"{","a":""}`, `{"a\\":1,"a":"\"","b" :1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		var read map[string]json.RawMessage
		if json.Unmarshal(document, &read) != nil || jsonbound.Exact(document) != nil {
			return
		}
		names := 0
		decoder := json.NewDecoder(bytes.NewReader(document))
		if _, err := decoder.Token(); err != nil {
			return
		}
		for decoder.More() {
			var value json.RawMessage
			if _, err := decoder.Token(); err != nil {
				return // null
			}
			if decoder.Decode(&value) == nil {
				names++
			}
		}
		if names != len(read) {
			t.Errorf("%d names, %d fields in %q", names, len(read), document)
		}
	})
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
