package rules

import "strconv"

// path leads to a field, such as spec.http[0].headers["x"].
type path string

// field is a field below; of the empty path, a field of the message itself.
func (p path) field(name string) path {
	if p == "" {
		return path(name)
	}
	return p + "." + path(name)
}

// index is an element of a list.
func (p path) index(i int) path { return p + "[" + path(strconv.Itoa(i)) + "]" }

// key is a value of a map.
func (p path) key(k string) path { return p + "[" + path(strconv.Quote(k)) + "]" }
