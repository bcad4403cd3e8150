package version

import (
	"fmt"
	"slices"
	"strings"
)

// latest is the constraint that a reference without one has.
const latest = "latest"

// Constraint chooses among versions. The grammar, loosest binding first:
//
//	constraint = "latest" | "" | "*" | set { "||" set }
//	set        = comparator { ( " " | "," ) comparator }
//	comparator = [ "=" | "!=" | ">" | ">=" | "<" | "<=" | "~" | "^" | "~>" ] partial
//	partial    = MAJOR [ "." MINOR [ "." PATCH [ "-" PRERELEASE ] ] ]
//
// A partial version stands for all versions that begin so: 1.2 is any 1.2.x,
// >1.2 is 1.3.0 and above, <=1.2 is below 1.3.0. ~1.2.3 and ~1.2 stay in 1.2;
// ~1 and ^1 stay in 1; ^0.2 stays in 0.2; ~> 1.2 stays in 1 and ~> 1.2.3 stays
// in 1.2 (the last number given may grow).
//
// A prerelease matches only where a comparator of the same set names a
// prerelease of the same MAJOR.MINOR.PATCH. So latest, 1 and >=1.0.0 never
// choose one, and 2.0.0-rc.1 and >=2.0.0-rc.1 do.
//
// The zero value is latest.
type Constraint struct {
	text string
	sets [][]comparator
}

// comparator is one side of an interval. Every operator of the grammar is translated to these.
type comparator struct {
	op    op
	bound Version
	// family says that the bound came from a partial version. end is then where
	// the family that a "!=" excludes ends, exclusive.
	family bool
	end    Version
}

type op byte

const (
	opEqual op = iota
	opNot
	opGreater
	opGreaterEqual
	opLess
	opLessEqual
)

// Latest is the constraint "latest": the greatest release.
func Latest() Constraint { return Constraint{text: latest} }

// Exactly is the constraint that only v (with any build metadata) matches.
func Exactly(v Version) Constraint {
	return Constraint{text: v.Core().String(), sets: [][]comparator{{{op: opEqual, bound: v.Core()}}}}
}

// ParseConstraint reads a constraint; the empty text means latest. A single
// version may be written as in a tag (v1.2.3, 1.2.3_build).
//
// Errors match [ErrInvalid].
func ParseConstraint(text string) (Constraint, error) {
	if len(text) > MaxLength {
		return Constraint{}, fmt.Errorf("%w: constraint longer than %d bytes", ErrInvalid, MaxLength)
	}
	trimmed := strings.TrimSpace(text)
	switch trimmed {
	case "", latest:
		return Latest(), nil
	case "*":
		return Constraint{text: "*"}, nil
	}
	if v, err := ParseTag(trimmed); err == nil {
		return Exactly(v), nil
	}
	c := Constraint{text: strings.Join(strings.Fields(trimmed), " ")}
	for part := range strings.SplitSeq(trimmed, "||") {
		set, err := parseSet(part)
		if err != nil {
			return Constraint{}, fmt.Errorf("constraint %q: %w", text, err)
		}
		c.sets = append(c.sets, set)
	}
	return c, nil
}

// String is the constraint as it was written, with runs of spaces made one.
// ParseConstraint(c.String()) matches the same versions as c.
func (c Constraint) String() string {
	if c.text == "" {
		return latest
	}
	return c.text
}

// IsLatest says whether any release will do.
func (c Constraint) IsLatest() bool { return len(c.sets) == 0 }

// Exact gives the one version that the constraint allows, if it is written as
// one version.
func (c Constraint) Exact() (Version, bool) {
	if len(c.sets) != 1 || len(c.sets[0]) != 1 {
		return Version{}, false
	}
	only := c.sets[0][0]
	return only.bound, only.op == opEqual
}

// Alias gives the floating tag under which the runner's convention publishes
// the greatest version that matches (latest, 1, 1.2), and false for constraints
// that no such tag stands for.
func (c Constraint) Alias() (string, bool) {
	if c.IsLatest() {
		return latest, true
	}
	p, rest, err := parsePartial(strings.TrimPrefix(c.text, "v"))
	if err != nil || rest != "" || p.parts == 3 {
		return "", false
	}
	return p.String(), true
}

// Match says whether v satisfies the constraint.
func (c Constraint) Match(v Version) bool {
	if len(c.sets) == 0 {
		return !v.IsPrerelease()
	}
	return slices.ContainsFunc(c.sets, func(set []comparator) bool { return matchSet(set, v) })
}

// Select gives the greatest of the versions that match, and false if none does.
// Of versions that differ in build metadata only, the one with the greatest
// text is chosen, so that the order of the input never matters.
func (c Constraint) Select(versions []Version) (Version, bool) {
	var best Version
	found := false
	for _, v := range versions {
		if !c.Match(v) {
			continue
		}
		if !found || Less(best, v) {
			best, found = v, true
		}
	}
	return best, found
}

// Less is a total order: precedence first, then the text of the build metadata.
func Less(a, b Version) bool {
	if c := a.Compare(b); c != 0 {
		return c < 0
	}
	return a.build < b.build
}

// MarshalText writes [Constraint.String].
func (c Constraint) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads as [ParseConstraint].
func (c *Constraint) UnmarshalText(text []byte) error {
	parsed, err := ParseConstraint(string(text))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}

func matchSet(set []comparator, v Version) bool {
	for _, c := range set {
		if !c.match(v) {
			return false
		}
	}
	if !v.IsPrerelease() {
		return true
	}
	return slices.ContainsFunc(set, func(c comparator) bool {
		return c.op != opNot && c.bound.IsPrerelease() && c.bound.sameRelease(v)
	})
}

func (v Version) sameRelease(other Version) bool {
	return v.major == other.major && v.minor == other.minor && v.patch == other.patch
}

func (c comparator) match(v Version) bool {
	order := v.Compare(c.bound)
	switch c.op {
	case opEqual:
		return order == 0
	case opNot:
		if c.family {
			return order < 0 || v.Compare(c.end) >= 0
		}
		return order != 0
	case opGreater:
		return order > 0
	case opGreaterEqual:
		return order >= 0
	case opLess:
		// The end of a family is not reached by the prereleases of that end either:
		// 2.0.0-rc.1 is not a 1.
		return order < 0 && (!c.family || !v.sameRelease(c.bound))
	case opLessEqual:
		return order <= 0
	}
	return false
}
