package migrate

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain"
)

// set is the plugins.yaml for a cluster as it is edited: comments stay.
type set struct{ root yamlv3.Node }

func newSet() (*set, error) {
	s := &set{}
	if err := yamlv3.Unmarshal(coxswain.KubernetesSet(), &s.root); err != nil {
		return nil, err
	}
	return s, nil
}

// entries are those of a built-in plugin.
func (s *set) entries(builtin string) (all []*yamlv3.Node) {
	for _, e := range under(s.root.Content[0], "plugins").Content {
		if b := under(e, "builtin"); b != nil && b.Value == builtin {
			all = append(all, e)
		}
	}
	return all
}

// under is the value of a key; nil if there is none.
func under(m *yamlv3.Node, key string) *yamlv3.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	return nil
}

// put sets a key of a mapping.
func put(m *yamlv3.Node, key string, value *yamlv3.Node) {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			m.Content[i+1] = value
			return
		}
	}
	m.Content = append(m.Content, &yamlv3.Node{Kind: yamlv3.ScalarNode, Value: key}, value)
}

// config sets a field of the config of all entries of a built-in plugin.
func (s *set) config(builtin string, value any, at ...string) {
	s.field(builtin, value, append([]string{"config"}, at...)...)
}

// field sets a field of all entries of a built-in plugin.
func (s *set) field(builtin string, value any, at ...string) {
	for _, e := range s.entries(builtin) {
		to := e
		for _, key := range at[:len(at)-1] {
			next := under(to, key)
			if next == nil {
				next = &yamlv3.Node{Kind: yamlv3.MappingNode}
				put(to, key, next)
			}
			to = next
		}
		v := &yamlv3.Node{}
		if err := v.Encode(value); err != nil {
			panic(fmt.Sprintf("a value of %s can't be written: %v", builtin, err)) // texts, numbers, switches and lists can
		}
		put(to, at[len(at)-1], v)
	}
}

// add adds an entry, with further keys.
func (s *set) add(name, kind, builtin string, more map[string]any) {
	e := &yamlv3.Node{Kind: yamlv3.MappingNode}
	for _, pair := range [][2]string{{"name", name}, {"kind", kind}, {"builtin", builtin}} {
		put(e, pair[0], &yamlv3.Node{Kind: yamlv3.ScalarNode, Value: pair[1]})
	}
	for _, key := range slices.Sorted(maps.Keys(more)) {
		v := &yamlv3.Node{}
		if err := v.Encode(more[key]); err != nil {
			panic(fmt.Sprintf("%s of %s can't be written: %v", key, name, err)) // texts and maps of them can
		}
		put(e, key, v)
	}
	all := under(s.root.Content[0], "plugins")
	all.Content = append(all.Content, e)
}

// enable has the entries of a built-in plugin run, disable has them not run.
func (s *set) enable(builtin string) {
	for _, e := range s.entries(builtin) {
		for i := 0; i+1 < len(e.Content); i += 2 {
			if e.Content[i].Value == "disabled" {
				e.Content = append(e.Content[:i], e.Content[i+2:]...)
				break
			}
		}
	}
}

func (s *set) disable(builtin string) {
	for _, e := range s.entries(builtin) {
		v := &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!bool", Value: "true"}
		put(e, "disabled", v)
	}
}

func (s *set) text() ([]byte, error) {
	out := &bytes.Buffer{}
	e := yamlv3.NewEncoder(out)
	e.SetIndent(2)
	if err := e.Encode(&s.root); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}
