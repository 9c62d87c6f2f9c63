package mesh

import (
	"os"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Named is a place that an entry's config names for a setting: a file, or a key of a ConfigMap.
type Named struct {
	// Kind is MeshConfig or MeshNetworks.
	Kind string
	// File is a path; empty: it is a ConfigMap's key.
	File                      string
	Namespace, ConfigMap, Key string
}

// Places returns the places that an entry's config names, in the order in which their texts are
// applied.
func Places(config []byte) (all []Named, err error) {
	c, err := strict.Parse(config, usual())
	if err != nil {
		return nil, err
	}
	for _, s := range []struct{ kind, key, file string }{{MeshConfig, meshKey, c.MeshConfig}, {MeshNetworks, networksKey, c.NetworksConfig}} {
		in := func(name string) Named {
			return Named{Kind: s.kind, Namespace: c.Namespace, ConfigMap: name, Key: s.key}
		}
		if c.SharedConfigMap != "" {
			all = append(all, in(c.SharedConfigMap))
		}
		switch {
		case s.file == os.DevNull:
		case s.file != "":
			all = append(all, Named{Kind: s.kind, File: s.file})
		case c.ConfigMap != "" && c.ConfigMap != c.SharedConfigMap:
			all = append(all, in(c.ConfigMap))
		}
	}
	return all, nil
}

// File returns what a file holds, as the plugin reads it; nil where there is none.
func File(path string) ([]byte, error) { return content(path) }
