package contract

import (
	"fmt"
	"strings"
)

// A refusal is a create that is no good: fields added to a good one, or taken
// away by nil.
type refusal struct {
	label string
	extra object
}

func refusalCases() []Case {
	return []Case{
		{"refused-2.93", func(s *Session) { refusals(s, "2.93") }},
		{"refused-2.52", func(s *Session) { refusals(s, "2.52") }},
		{"refused-hints", func(s *Session) {
			spec := s.Spec("contract-x", nil)
			spec["os:scheduler_hints"] = object{"group": nowhere}
			s.Call("unknown group", post, "compute", "/servers", spec)
			s.Call("no server", post, "compute", "/servers", object{"sever": object{}})
		}},
		{"refused-by-version", func(s *Session) {
			s.Micro("2.51")
			s.Call("tags", post, "compute", "/servers", s.Spec("contract-x", object{"tags": []any{"a"}}))
			s.Micro("2.66")
			s.Call("volume type", post, "compute", "/servers", s.Spec("contract-x", bootVolume(s, "lab", 1)))
		}},
	}
}

func refusals(s *Session, version string) {
	s.Micro(version)
	many := object{}
	for i := range 129 {
		many[fmt.Sprintf("k%d", i)] = "v"
	}
	tags := []any{}
	for i := range 51 {
		tags = append(tags, fmt.Sprintf("t%d", i))
	}
	for _, r := range []refusal{
		{"unknown flavor", object{"flavorRef": "nope"}},
		{"unknown image", object{"imageRef": nowhere}},
		{"no image", object{"imageRef": ""}},
		{"image that needs more", object{"imageRef": s.Image("Needs 20 GB")}},
		{"unknown key pair", object{"key_name": "nope"}},
		{"unknown network", object{"networks": []any{object{"uuid": nowhere}}}},
		{"any network", object{"networks": "auto"}},
		{"networks of no kind", object{"networks": "some"}},
		{"unknown port", object{"networks": []any{object{"port": nowhere}}}},
		{"unknown security group", object{"security_groups": named("nope")}},
		{"unknown zone", object{"availability_zone": "nope"}},
		{"a zone with a host", object{"availability_zone": "az-a:compute-a"}},
		{"no disk", object{"flavorRef": s.Flavor("m1.nodisk")}},
		{"empty name", object{"name": ""}},
		{"long name", object{"name": strings.Repeat("n", 256)}},
		{"long metadata", object{"metadata": object{"k": strings.Repeat("v", 256)}}},
		{"much metadata", object{"metadata": many}},
		{"a tag with a comma", object{"tags": []any{"a,b"}}},
		{"a tag with a slash", object{"tags": []any{"a/b"}}},
		{"an empty tag", object{"tags": []any{""}}},
		{"a long tag", object{"tags": []any{strings.Repeat("t", 61)}}},
		{"many tags", object{"tags": tags}},
		{"long user data", object{"user_data": strings.Repeat("QUJD", 16384)}},
		{"fewer at most than at least", object{"min_count": 2, "max_count": 1}},
	} {
		s.Call(r.label, post, "compute", "/servers", s.Spec("contract-x", r.extra))
	}
}
