package version

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxComparators bounds one set, so that matching stays cheap.
const maxComparators = 32

// partial is a version of which the last numbers may be missing.
type partial struct {
	low   Version
	parts int
}

func (p partial) String() string {
	switch p.parts {
	case 1:
		return strconv.FormatUint(p.low.major, 10)
	case 2:
		return strconv.FormatUint(p.low.major, 10) + "." + strconv.FormatUint(p.low.minor, 10)
	}
	return p.low.String()
}

// end is the first version above the family that shares the first n numbers.
func (p partial) end(n int) Version {
	switch {
	case n <= 0:
		return Version{parsed: true, major: math.MaxUint64}
	case n == 1:
		return Version{parsed: true, major: p.low.major + 1}
	case n == 2:
		return Version{parsed: true, major: p.low.major, minor: p.low.minor + 1}
	}
	return Version{parsed: true, major: p.low.major, minor: p.low.minor, patch: p.low.patch + 1}
}

func parseSet(text string) ([]comparator, error) {
	rest := strings.Trim(text, " ,")
	if rest == "" {
		return nil, fmt.Errorf("%w: nothing before or after ||", ErrInvalid)
	}
	var set []comparator
	for rest != "" {
		operator, after := cutOperator(rest)
		p, tail, err := parsePartial(strings.TrimLeft(after, " "))
		if err != nil {
			return nil, err
		}
		set = append(set, translate(operator, p)...)
		if len(set) > maxComparators {
			return nil, fmt.Errorf("%w: more than %d conditions", ErrInvalid, maxComparators)
		}
		rest = strings.TrimLeft(tail, " ,")
		if rest != "" && len(rest) == len(tail) && !strings.ContainsRune("<>=!~^", rune(rest[0])) {
			return nil, fmt.Errorf("%w: %q after %q", ErrInvalid, rest, p.String())
		}
	}
	return set, nil
}

// cutOperator takes the operator off the front; longer ones are tried first.
func cutOperator(text string) (operator, rest string) {
	for _, candidate := range []string{"~>", ">=", "<=", "!=", "==", "=", ">", "<", "~", "^"} {
		if after, ok := strings.CutPrefix(text, candidate); ok {
			return candidate, after
		}
	}
	return "", text
}

// parsePartial reads one partial version up to a space, comma or operator.
func parsePartial(text string) (partial, string, error) {
	text = strings.TrimPrefix(text, "v")
	stop := strings.IndexAny(text, " ,<>=!~^|")
	if stop < 0 {
		stop = len(text)
	}
	word, rest := text[:stop], text[stop:]
	if word == "" {
		return partial{}, "", fmt.Errorf("%w: a version is missing", ErrInvalid)
	}
	if numbers := strings.Split(word, "."); len(numbers) < 3 {
		p := partial{parts: len(numbers)}
		for i, into := range []*uint64{&p.low.major, &p.low.minor}[:len(numbers)] {
			n, err := number(numbers[i])
			if err != nil {
				return partial{}, "", fmt.Errorf("%w %q: %w", ErrInvalid, word, err)
			}
			*into = n
		}
		return p, rest, nil
	}
	v, err := ParseTag(word)
	if err != nil {
		return partial{}, "", errors.Unwrap(err)
	}
	return partial{low: v.Core(), parts: 3}, rest, nil
}

// translate turns one operator on a partial version into bounds.
func translate(operator string, p partial) []comparator {
	full := p.parts == 3
	switch operator {
	case "!=":
		return []comparator{{op: opNot, bound: p.low, end: p.end(p.parts), family: !full}}
	case ">":
		if full {
			return []comparator{{op: opGreater, bound: p.low}}
		}
		return []comparator{{op: opGreaterEqual, bound: p.end(p.parts)}}
	case ">=":
		return []comparator{{op: opGreaterEqual, bound: p.low}}
	case "<":
		return []comparator{{op: opLess, bound: p.low}}
	case "<=":
		if full {
			return []comparator{{op: opLessEqual, bound: p.low}}
		}
		return []comparator{{op: opLess, bound: p.end(p.parts), family: true}}
	case "~":
		return p.between(min(p.parts, 2))
	case "~>":
		return p.between(max(1, p.parts-1))
	case "^":
		return p.between(p.significant())
	}
	if full {
		return []comparator{{op: opEqual, bound: p.low}}
	}
	return p.between(p.parts)
}

// between is: at least the version, and its first n numbers stay.
func (p partial) between(n int) []comparator {
	return []comparator{
		{op: opGreaterEqual, bound: p.low},
		{op: opLess, bound: p.end(n), family: true},
	}
}

// significant counts the numbers up to the first that is not zero: what ^ keeps.
func (p partial) significant() int {
	for i, n := range []uint64{p.low.major, p.low.minor, p.low.patch}[:p.parts] {
		if n != 0 {
			return i + 1
		}
	}
	return p.parts
}
