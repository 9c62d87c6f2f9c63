package view

import "slices"

// Differ yields the names in which a set differs from an older one, in order, with their bodies
// before and after; nil: there was or is none. Sets that follow each other are compared by what was
// changed alone.
func Differ(old, now *Set, yield func(name string, before, after *Body)) {
	if old == now {
		return
	}
	steps, known := now.since(old)
	if !known {
		merge(old.Bodies(), now.Bodies(), yield)
		return
	}
	var names []string
	for _, s := range steps {
		names = append(names, s.names...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if a, b := old.Get(name), now.Get(name); !alike(a, b) {
			yield(name, a, b)
		}
	}
}

// merge compares all of two sets.
func merge(a, b []*Body, yield func(name string, before, after *Body)) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
			yield(a[0].name, a[0], nil)
			a = a[1:]
		case len(a) == 0 || b[0].name < a[0].name:
			yield(b[0].name, nil, b[0])
			b = b[1:]
		default:
			if !alike(a[0], b[0]) {
				yield(a[0].name, a[0], b[0])
			}
			a, b = a[1:], b[1:]
		}
	}
}

// alike reports whether two bodies of a name are of one version; marks of absent names are.
func alike(a, b *Body) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.version == b.version
}

// Mark returns what stands for a resource where its name and version alone are known. Like the mark
// of an absent name it doesn't Exist.
func Mark(name, version string) *Body { return &Body{name: name, version: version} }
