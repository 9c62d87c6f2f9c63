package strict

import (
	"encoding/json"
	"math"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// JSON is any value, as canonical JSON: sorted keys, no spaces. It is nil where the file says
// nothing or null.
type JSON []byte

// json converts a node, and notes where in the file its values stand: KEY.field[2].inner. It
// returns nil after reporting an error.
func (d *decoder) json(n *yaml.Node, key string, where Keys) []byte {
	errors := len(d.errors)
	value := d.plain(n, key, where)
	if value == nil || len(d.errors) > errors {
		return nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		d.fail(n, "%s", err)
		return nil
	}
	return text
}

// Where says where the values of a document stand, as if it were the value of a key of another one:
// KEY.field[2].inner. What can't be read has no place.
func Where(file string, data []byte, key string) Keys {
	d, where := &decoder{file: file, budget: maxNodes}, Keys{}
	if root, ok := d.document(data); ok {
		d.json(root, key, where)
	}
	return where
}

// plain returns a node as map[string]any, []any or a scalar that encoding/json knows.
func (d *decoder) plain(at *yaml.Node, path string, where Keys) any {
	where[path] = d.place(at)
	n, ok := d.enter(at)
	defer d.leave()
	if !ok {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for _, p := range d.pairs(n) {
			out[p.key.Value] = d.plain(p.value, path+"."+p.key.Value, where)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, one := range n.Content {
			out[i] = d.plain(one, path+"["+strconv.Itoa(i)+"]", where)
		}
		return out
	}
	return d.plainScalar(at, n)
}

func (d *decoder) plainScalar(at, n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int":
		if number, ok := wholeNumber(n); ok {
			return number
		}
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			d.fail(at, "%s is no number that JSON has", n.Value)
			return nil
		}
		return f
	}
	return n.Value
}

func wholeNumber(n *yaml.Node) (json.Number, bool) {
	var i int64
	if n.Decode(&i) == nil {
		return json.Number(strconv.FormatInt(i, 10)), true
	}
	var u uint64
	if n.Decode(&u) == nil {
		return json.Number(strconv.FormatUint(u, 10)), true
	}
	return "", false
}
