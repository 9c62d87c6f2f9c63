package config

import (
	"iter"
	"strings"
)

// Keys are keys of rows, in order, as one value that can be compared: so keys of functions and of
// views have them. The zero value is none.
type Keys string

// keySeparator stands in no name of a resource.
const keySeparator = ","

// KeysOf returns a list as one value.
func KeysOf(list []string) Keys { return Keys(strings.Join(list, keySeparator)) }

// All yields the keys in their order.
func (k Keys) All() iter.Seq[string] {
	if k == "" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(string(k), keySeparator)
}
