package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Edit changes entries of a plugins.yaml. Comments, order and all that is not touched stay as they
// are.
type Edit struct {
	text []byte
	root *yaml.Node
}

// NewEdit begins to edit a text that Parse takes.
func NewEdit(text []byte) (*Edit, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 || field(doc.Content[0], "plugins") == nil {
		return nil, errors.New("the file has no `plugins`")
	}
	return &Edit{text: text, root: &doc}, nil
}

// field returns the value of a mapping's key, nil where there is none.
func field(m *yaml.Node, key string) *yaml.Node {
	if m.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// Entry changes one entry by a func that is given its mapping, and returns the text after that.
func (e *Edit) Entry(name string, change func(Mapping) error) ([]byte, error) {
	list := field(e.root.Content[0], "plugins")
	for i, n := range list.Content {
		if v := field(n, "name"); v == nil || v.Value != name {
			continue
		}
		if err := change(Mapping{n}); err != nil {
			return nil, err
		}
		if list.Style&yaml.FlowStyle != 0 {
			return encode(e.root)
		}
		return e.splice(list, i)
	}
	return nil, fmt.Errorf("the file has no plugin %s", name)
}

// splice puts the entry's new text in the place of the old one. yaml.v3 keeps comments, but not
// empty lines, so that only this entry is encoded.
func (e *Edit) splice(list *yaml.Node, i int) ([]byte, error) {
	lines := strings.SplitAfter(string(e.text), "\n")
	n := list.Content[i]
	first, last := n.Line-1, len(lines)
	if i+1 < len(list.Content) {
		last = list.Content[i+1].Line - 1
	} else if after := keyAfter(e.root.Content[0], "plugins"); after != nil {
		last = after.Line - 1
	}
	for last > first+1 && blank(lines[last-1]) {
		last--
	}
	entry := *n
	entry.HeadComment, entry.FootComment = "", ""
	forgetFoot(&entry)
	text, err := encode(&entry)
	if err != nil {
		return nil, err
	}
	text = airy(text, lines[first:last])
	margin := strings.Repeat(" ", n.Column-1)
	head := lines[first][:n.Column-1] // up to the dash and the spaces behind it
	var out strings.Builder
	out.WriteString(strings.Join(lines[:first], ""))
	for j, line := range slices.Collect(strings.Lines(string(text))) {
		switch {
		case j == 0:
			out.WriteString(head + line)
		case strings.TrimSpace(line) == "":
			out.WriteString(line)
		default:
			out.WriteString(margin + line)
		}
	}
	out.WriteString(strings.Join(lines[last:], ""))
	return []byte(out.String()), nil
}

// forgetFoot leaves out comments behind an entry's last line: they stay where they are.
func forgetFoot(n *yaml.Node) {
	if len(n.Content) == 0 {
		return
	}
	for _, at := range n.Content[max(0, len(n.Content)-2):] {
		at.FootComment = ""
		forgetFoot(at)
	}
}

// blank reports whether a line says nothing but a comment.
func blank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#") || line == "..." || line == "---"
}

func keyAfter(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+2 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+2]
		}
	}
	return nil
}

func encode(n *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return nil, err
	}
	err := enc.Close()
	return b.Bytes(), err
}

// Mapping is a mapping of the file.
type Mapping struct{ node *yaml.Node }

// Has reports whether a key is given.
func (m Mapping) Has(key string) bool { return field(m.node, key) != nil }

// At returns the mapping that is the value of a key.
func (m Mapping) At(key string) (Mapping, bool) {
	n := field(m.node, key)
	return Mapping{n}, n != nil && n.Kind == yaml.MappingNode
}

// Items returns the mappings of the list that is the value of a key.
func (m Mapping) Items(key string) []Mapping {
	n := field(m.node, key)
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	var all []Mapping
	for _, one := range n.Content {
		all = append(all, Mapping{one})
	}
	return all
}

// Text returns the scalar that is the value of a key.
func (m Mapping) Text(key string) string {
	if n := field(m.node, key); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// Delete takes a key away.
func (m Mapping) Delete(key string) {
	for i := 0; i+1 < len(m.node.Content); i += 2 {
		if m.node.Content[i].Value == key {
			m.node.Content = slices.Delete(m.node.Content, i, i+2)
			return
		}
	}
}

// Set gives a key a value, which is encoded as YAML; a new key comes last.
func (m Mapping) Set(key string, value any) error {
	var n yaml.Node
	if raw, ok := value.(*yaml.Node); ok {
		n = *raw
	} else if err := n.Encode(value); err != nil {
		return err
	}
	if old := field(m.node, key); old != nil {
		n.LineComment = old.LineComment
		*old = n
		return nil
	}
	m.node.Content = append(m.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, &n)
	return nil
}

// Become gives it all that another mapping has, in place of its own.
func (m Mapping) Become(other Mapping) {
	m.node.Content, m.node.Style = other.node.Content, other.node.Style
}

// Rename gives a key another name and value, in its place.
func (m Mapping) Rename(key, to string, value any) error {
	for i := 0; i+1 < len(m.node.Content); i += 2 {
		if m.node.Content[i].Value == key {
			m.node.Content[i].Value = to
			return m.Set(to, value)
		}
	}
	return m.Set(to, value)
}

// Move gives a key's value to another mapping.
func (m Mapping) Move(key string, to Mapping) {
	if n := field(m.node, key); n != nil {
		m.Delete(key)
		to.node.Content = append(to.node.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, n)
	}
}
