// Package value stands in for moa's: values of a kind, and nothing in them.
package value

import "errors"

// Kind is the kind of a value.
type Kind string

// The kinds that the runner tells apart.
const (
	NullKind   Kind = "null"
	BoolKind   Kind = "bool"
	NumberKind Kind = "number"
	StringKind Kind = "string"
	ArrayKind  Kind = "array"
	ObjectKind Kind = "object"
)

// What the runner returns.
var (
	ErrAttributeNotFound = errors.New("attribute not found")
	ErrInvalidKey        = errors.New("invalid key")
)

// Mapper is an object.
type Mapper interface{ Len() int }

// Value is a value.
type Value struct {
	kind Kind
	text string
}

// Null is no value.
func Null() Value { return Value{kind: NullKind} }

// String is a text.
func String(text string) Value { return Value{kind: StringKind, text: text} }

// Object is an object, without what is in it.
func Object(Mapper) Value { return Value{kind: ObjectKind} }

// UnmarshalJSON fails.
func (*Value) UnmarshalJSON([]byte) error { return errors.New("job inputs are not built in") }

// Kind is the value's kind.
func (v Value) Kind() Kind { return v.kind }

// String is the value's text, of those that have one.
func (v Value) String() string { return v.text }

// WithMarks returns the value as it is.
func (v Value) WithMarks(uint16) Value { return v }

// HasMarks is false.
func (Value) HasMarks(uint16) bool { return false }
