package manifest

import (
	"reflect"
	"slices"
)

// Get returns the entry of a name, nil where there is none, and its place.
func (s *Set) Get(name string) (*Entry, int) {
	i := slices.IndexFunc(s.Plugins, func(e *Entry) bool { return e.Name == name })
	if i < 0 {
		return nil, -1
	}
	return s.Plugins[i], i
}

// With returns the set with an entry in the place of the one of its name.
func (s *Set) With(e *Entry) *Set {
	next := &Set{file: s.file, Plugins: slices.Clone(s.Plugins)}
	if _, i := s.Get(e.Name); i >= 0 {
		next.Plugins[i] = e
	} else {
		next.Plugins = append(next.Plugins, e)
	}
	return next
}

// Of returns the set with other entries.
func (s *Set) Of(entries []*Entry) *Set { return &Set{file: s.file, Plugins: entries} }

// Same reports whether two entries mean the same, wherever they stand.
func Same(a, b *Entry) bool { return reflect.DeepEqual(bare(a), bare(b)) }

// bare is an entry as it is declared, without places.
func bare(e *Entry) Entry {
	c := *e.Declaration()
	if c.Pull != nil {
		p := *c.Pull
		p.Keys = nil
		c.Pull = &p
	}
	c.At, c.Keys, c.Limits.Keys = Entry{}.At, nil, nil
	if c.Process != nil {
		p := *c.Process
		p.Keys = nil
		c.Process = &p
	}
	if c.Wasm != nil {
		w := *c.Wasm
		w.Keys = nil
		c.Wasm = &w
	}
	if c.ForEach != nil {
		f := *c.ForEach
		f.Keys = nil
		c.ForEach = &f
	}
	if c.Sandbox != nil {
		s := *c.Sandbox
		s.Keys = nil
		c.Sandbox = &s
	}
	return c
}

// Differing are the keys in which two entries differ.
func Differing(a, b *Entry) []string {
	if a == nil || b == nil {
		return nil
	}
	var keys []string
	x, y := reflect.ValueOf(bare(a)), reflect.ValueOf(bare(b))
	for _, f := range reflect.VisibleFields(x.Type()) {
		key := f.Tag.Get("yaml")
		if key != "" && !reflect.DeepEqual(x.FieldByIndex(f.Index).Interface(), y.FieldByIndex(f.Index).Interface()) {
			keys = append(keys, key)
		}
	}
	return keys
}
