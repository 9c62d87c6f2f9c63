package strict

import (
	"go.yaml.in/yaml/v3"
)

type pair struct {
	key, value *yaml.Node
}

// pairs returns a mapping's keys and values, with what `<<` merges, and reports keys that stand
// there twice. Keys of the mapping itself are stronger than merged ones.
func (d *decoder) pairs(n *yaml.Node) []pair {
	seen := map[string]*yaml.Node{}
	var own []pair
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		name, ok := d.key(key)
		if !ok {
			continue
		}
		if first := seen[name]; first != nil {
			d.fail(key, "key `%s` is given twice; first in line %d", name, first.Line)
			continue
		}
		seen[name] = key
		own = append(own, pair{key, value})
	}
	for _, m := range merged {
		own = d.merge(own, seen, m)
	}
	return own
}

func (d *decoder) merge(own []pair, seen map[string]*yaml.Node, from *yaml.Node) []pair {
	n, ok := d.enter(from)
	defer d.leave()
	switch {
	case !ok:
	case n.Kind == yaml.SequenceNode:
		for _, one := range n.Content {
			own = d.merge(own, seen, one)
		}
	case n.Kind == yaml.MappingNode:
		d.budget -= len(n.Content)
		for _, p := range d.pairs(n) {
			if seen[p.key.Value] == nil {
				seen[p.key.Value] = p.key
				own = append(own, p)
			}
		}
	default:
		d.fail(from, "`<<` wants a mapping or a list of mappings, not %s", describe(n))
	}
	return own
}

func (d *decoder) key(n *yaml.Node) (string, bool) {
	at := n
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.fail(at, "a key must be a word, not %s", describe(n))
		return "", false
	}
	return n.Value, true
}

// describe names a value for people.
func describe(n *yaml.Node) string {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!bool", "!!int", "!!float":
		return n.Value
	}
	return "`" + n.Value + "`"
}
