package cloud

import (
	"bytes"
	"encoding/json"
	"errors"
)

// errNotJSON is all that a scanner says of what it cannot read.
var errNotJSON = errors.New("the answer is not valid JSON, or is cut off")

// scanner walks over JSON and decodes only what it is asked for. Listings are
// most of what a plugin reads, nine tenths of each is not needed, and
// encoding/json spends its time on that.
//
// It refuses what is cut off, unbalanced or followed by anything. Inside a
// value that is skipped it does not look for more than brackets and strings.
type scanner struct {
	b   []byte
	i   int
	bad bool
}

// fail notes that this is not JSON; everything that follows reads as empty.
func (s *scanner) fail() {
	s.bad = true
	s.i = len(s.b)
}

// space moves to the next byte that is not white space, and returns it; 0 at
// the end.
func (s *scanner) space() byte {
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

// take moves past one byte that must be there.
func (s *scanner) take(want byte) {
	if s.space() != want {
		s.fail()
		return
	}
	s.i++
}

// end refuses what follows the value.
func (s *scanner) end() error {
	if s.bad || s.space() != 0 || s.i < len(s.b) {
		return errNotJSON
	}
	return nil
}

// object calls member with each key of an object, with the scanner at the
// value; member must take exactly that value. Anything else than an object is
// skipped, and object returns false.
func (s *scanner) object(member func(key []byte)) bool {
	if s.space() != '{' {
		s.skip()
		return false
	}
	s.i++
	for first := true; !s.bad && s.space() != '}'; first = false {
		if !first {
			s.take(',')
		}
		if s.space() != '"' {
			s.fail()
			return true
		}
		key := s.raw()
		s.take(':')
		member(key)
	}
	s.take('}')
	return true
}

// array calls element with the scanner at each element of an array. Anything
// else than an array is skipped, and array returns false.
func (s *scanner) array(element func()) bool {
	if s.space() != '[' {
		s.skip()
		return false
	}
	s.i++
	for first := true; !s.bad && s.space() != ']'; first = false {
		if !first {
			s.take(',')
		}
		element()
	}
	s.take(']')
	return true
}

// text takes a string; anything else is skipped and gives an empty one.
func (s *scanner) text() string { return string(s.raw()) }

// raw is text without a copy, for what is only compared.
func (s *scanner) raw() []byte {
	if s.space() != '"' {
		s.skip()
		return nil
	}
	start := s.i
	s.skipString()
	if s.bad {
		return nil
	}
	quoted := s.b[start:s.i]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		s.fail()
		return nil
	}
	return []byte(text)
}

// flag takes a value and reports whether it is true.
func (s *scanner) flag() bool {
	yes := s.space() == 't'
	s.skip()
	return yes
}

// skip moves past one value.
func (s *scanner) skip() {
	switch s.space() {
	case '"':
		s.skipString()
	case '{', '[':
		s.skipNested()
	default:
		s.skipWord()
	}
}

// skipWord moves past a number, true, false or null.
func (s *scanner) skipWord() {
	start := s.i
	for ; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case ',', ']', '}', ' ', '\n', '\t', '\r', ':', '"', '{', '[':
			if s.i == start {
				s.fail()
			}
			return
		}
	}
	s.fail() // at the top there is always a bracket to come
}

func (s *scanner) skipNested() {
	for depth := 0; s.i < len(s.b); {
		switch s.b[s.i] {
		case '"':
			s.skipString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.i++
		if depth == 0 {
			return
		}
	}
	s.fail()
}

// skipString moves past a string that starts here.
func (s *scanner) skipString() {
	start := s.i
	s.i++
	for {
		end := bytes.IndexByte(s.b[s.i:], '"')
		if end < 0 {
			s.fail()
			return
		}
		s.i += end + 1
		slashes := 0
		for j := s.i - 2; j > start && s.b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return
		}
	}
}
