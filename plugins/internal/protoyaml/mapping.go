package protoyaml

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Pair is a key of a mapping, and its value as it is written; that may be an alias.
type Pair struct {
	Key, Value *yaml.Node
	// merged pairs came by a merge key.
	merged bool
}

// Pairs returns the entries of a mapping in order, with what merge keys (`<<`) bring and the
// mapping hasn't got itself, and faults: keys that are no scalars or stand twice. The node must be
// a mapping.
func Pairs(mapping *yaml.Node) ([]Pair, []Fault) {
	m := merge(mapping)
	return m.pairs, m.faults
}

func merge(mapping *yaml.Node) merger {
	m := merger{pairs: make([]Pair, 0, len(mapping.Content)/2)}
	m.add(mapping, 0)
	return m
}

type merger struct {
	pairs  []Pair
	faults []Fault
	// seen are the keys of pairs, once there are too many to look through.
	seen map[string]*yaml.Node
	// merged is how many entries merge keys have led to.
	merged int
}

// maxMerged bounds the entries that are merged into one mapping; mappings may name themselves, and
// each other many times.
const maxMerged = 10_000

func (m *merger) add(mapping *yaml.Node, depth int) {
	var merges []*yaml.Node
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := Resolve(mapping.Content[i]), mapping.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			m.fault(key, CodeValue, "a key must be a string, not "+describe(key))
		case key.Tag == "!!merge":
			merges = append(merges, value)
		default:
			m.put(key, value, depth)
		}
	}
	for _, merge := range merges {
		m.merge(merge, depth+1, false)
	}
}

// few is how many keys are looked through, one by one: most mappings have no more.
const few = 8

// first returns a key's first place; nil: it is new.
func (m *merger) first(key string) *yaml.Node {
	if m.seen != nil {
		return m.seen[key]
	}
	for _, p := range m.pairs {
		if p.Key.Value == key {
			return p.Key
		}
	}
	return nil
}

// note makes a new key known.
func (m *merger) note(key *yaml.Node) {
	if m.seen == nil && len(m.pairs) == few {
		m.seen = make(map[string]*yaml.Node, cap(m.pairs))
		for _, p := range m.pairs {
			m.seen[p.Key.Value] = p.Key
		}
	}
	if m.seen != nil {
		m.seen[key.Value] = key
	}
}

func (m *merger) put(key, value *yaml.Node, depth int) {
	first := m.first(key.Value)
	if first == nil {
		m.note(key)
		m.pairs = append(m.pairs, Pair{key, value, depth > 0})
		return
	}
	if depth == 0 {
		m.fault(key, CodeTwice, fmt.Sprintf("%q is given twice, first in line %d", key.Value, first.Line))
	}
}

// merge adds a mapping, or each of a list of mappings; earlier ones win.
func (m *merger) merge(source *yaml.Node, depth int, inList bool) {
	target := Resolve(source)
	if m.merged > maxMerged {
		return
	}
	if m.merged += 1 + len(target.Content)/2; m.merged > maxMerged {
		m.fault(source, CodeTooLarge, fmt.Sprintf("more than %d entries merged into one mapping", maxMerged))
		return
	}
	switch {
	case target.Kind == yaml.MappingNode:
		m.add(target, depth)
	case target.Kind == yaml.SequenceNode && !inList:
		for _, each := range target.Content {
			m.merge(each, depth, true)
		}
	default:
		m.fault(source, CodeValue, "a merge key needs a mapping, not "+describe(target))
	}
}

func (m *merger) fault(at *yaml.Node, code, reason string) {
	m.faults = append(m.faults, Fault{Line: at.Line, Column: at.Column, Code: code, Reason: reason})
}

// Resolve returns the node that an alias names, and any other node as it is.
func Resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// IsNull reports whether a node says null, in so many words or by having no text.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// describe says what a node is, for messages.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "null"
	case n.Tag == "!!int" || n.Tag == "!!float":
		return "the number " + clip(n.Value)
	case n.Tag == "!!bool":
		return "the boolean " + clip(n.Value)
	case n.Tag == "!!str" || n.Tag == "!!timestamp" || n.Tag == "!!merge":
		return fmt.Sprintf("the string %q", clip(n.Value))
	}
	return fmt.Sprintf("%q with tag %s", clip(n.Value), n.Tag)
}

// clip keeps what people wrote readable in a message.
func clip(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
