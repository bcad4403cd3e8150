package cloud

import (
	"bytes"
	"encoding/json"
)

// scanner walks over JSON that is known to be valid (json.Valid) and decodes
// only what it is asked for. Listings are most of what a plugin reads, nine
// tenths of each is not needed, and encoding/json spends its time on that.
type scanner struct {
	b []byte
	i int
}

// space moves to the next byte that is not white space, and returns it.
func (s *scanner) space() byte {
	for s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r' {
		s.i++
	}
	return s.b[s.i]
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
	for s.space() != '}' {
		key := s.raw()
		s.space()
		s.i++ // the colon
		s.space()
		member(key)
		if s.space() == ',' {
			s.i++
		}
	}
	s.i++
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
	for s.space() != ']' {
		element()
		if s.space() == ',' {
			s.i++
		}
	}
	s.i++
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
	quoted := s.b[start:s.i]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil {
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
		for s.i < len(s.b) && !bytes.ContainsRune([]byte(",]} \n\t\r"), rune(s.b[s.i])) {
			s.i++
		}
	}
}

func (s *scanner) skipNested() {
	for depth := 0; ; {
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
}

func (s *scanner) skipString() {
	for s.i++; ; {
		end := bytes.IndexByte(s.b[s.i:], '"')
		s.i += end + 1
		slashes := 0
		for j := s.i - 2; s.b[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return
		}
	}
}
