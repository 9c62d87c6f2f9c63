package protoyaml

import (
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Locate returns where a field's path, such as spec.http[0].headers["x"], leads within a document:
// the value, or, where the text has no such field, the nearest above it that it has. Fields may be
// written by their JSON or their proto names. A map's key may stand in brackets with quotes,
// without them or, where it has neither dots nor brackets, as a field does.
func Locate(root *yaml.Node, path string) *yaml.Node {
	at := Resolve(root)
	for path != "" {
		var name string
		name, path = cutStep(path)
		next := child(at, name)
		if next == nil {
			return at
		}
		at = Resolve(next)
	}
	return at
}

// cutStep returns a path's first step and the rest.
func cutStep(path string) (name, rest string) {
	path = strings.TrimPrefix(path, ".")
	inner, bracket := strings.CutPrefix(path, "[")
	if !bracket {
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return path, ""
		}
		return path[:end], path[end:]
	}
	if quoted, err := strconv.QuotedPrefix(inner); err == nil {
		name, _ = strconv.Unquote(quoted)
		return name, strings.TrimPrefix(inner[len(quoted):], "]")
	}
	name, rest, _ = strings.Cut(inner, "]")
	return name, rest
}

// Child returns what stands under a key of a mapping, or at an index of a list, with aliases
// resolved; nil for nothing.
func Child(of *yaml.Node, name string) *yaml.Node {
	n := child(Resolve(of), name)
	if n == nil {
		return nil
	}
	return Resolve(n)
}

// child returns an element of a list, or the value under a key; nil for none.
func child(of *yaml.Node, name string) *yaml.Node {
	switch of.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(of.Content) {
			return of.Content[i]
		}
	case yaml.MappingNode:
		pairs, _ := Pairs(of)
		snake := snakeCase(name)
		for _, p := range pairs {
			if p.Key.Value == name || p.Key.Value == snake {
				return p.Value
			}
		}
	}
	return nil
}

// snakeCase returns the proto name of a JSON name.
func snakeCase(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
