package mesh

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
)

// InConfigMap is a text with settings of the mesh that a ConfigMap in a file has.
type InConfigMap struct {
	// Kind is MeshConfig or MeshNetworks; Namespace and Name are the ConfigMap's.
	Kind, Namespace, Name string
	Text                  []byte
	// Lines and Columns are what places in the text are moved by to be the file's.
	Lines, Columns int
}

// keyKinds are the keys under which istiod looks for settings in its ConfigMap.
var keyKinds = map[string]string{meshKey: MeshConfig, networksKey: MeshNetworks}

// InConfigMaps returns the settings of the mesh in ConfigMaps of a file's content that have
// istiod's names (istio, istio-REVISION). What can't be read is left out: whoever reads the file's
// objects says why.
func InConfigMaps(content []byte) (found []InConfigMap) {
	lines := strings.Split(string(content), "\n")
	for _, chunk := range protoyaml.Split(content) {
		root, fault := chunk.Parse()
		if fault != nil || root == nil || root.Kind != yaml.MappingNode || text(root, "kind") != "ConfigMap" || text(root, "apiVersion") != "v1" {
			continue
		}
		meta, data := protoyaml.Child(root, "metadata"), protoyaml.Child(root, "data")
		if meta == nil || data == nil || meta.Kind != yaml.MappingNode || data.Kind != yaml.MappingNode {
			continue
		}
		name := text(meta, "name")
		if name != "istio" && !strings.HasPrefix(name, "istio-") {
			continue
		}
		for _, key := range []string{meshKey, networksKey} {
			n := protoyaml.Child(data, key)
			if n == nil || n.Kind != yaml.ScalarNode {
				continue
			}
			m := InConfigMap{
				Kind: keyKinds[key], Namespace: text(meta, "namespace"), Name: name, Text: []byte(n.Value),
				Lines: n.Line - 1, Columns: n.Column - 1,
			}
			if n.Style == yaml.LiteralStyle && n.Line < len(lines) {
				m.Lines, m.Columns = n.Line, len(lines[n.Line])-len(strings.TrimLeft(lines[n.Line], " "))
			}
			found = append(found, m)
		}
	}
	return found
}

// text is a string of a mapping, empty where there is none.
func text(mapping *yaml.Node, key string) string {
	n := protoyaml.Child(mapping, key)
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}
