package parity

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// start is how the two are started in a state, where it is not as always: its start.yaml.
type start struct {
	// Istiod is added to its environment, Coxswain to our flags: what means the same. Flags are
	// added to those of both.
	Istiod, Coxswain, Flags []string
	// Plugins are entries of plugins.yaml. One of a name that the set has adds to its config;
	// others are added.
	Plugins []map[string]any
	// GatewayAPI: the cluster has the definitions of the Gateway API, too.
	GatewayAPI bool
}

// startOf reads a state's start.yaml; the zero value if there is none.
func startOf(t *testing.T, dir string) (s start) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "start.yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return s
	}
	if err == nil {
		err = yaml.UnmarshalStrict(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// set is the file with the set for a cluster, without guards, that the state asks for.
func (s start) set(t *testing.T) string {
	t.Helper()
	file := unguarded(t)
	if len(s.Plugins) == 0 {
		return file
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Plugins []map[string]any `json:"plugins"`
	}
	if err := yaml.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	for _, more := range s.Plugins {
		at := slices.IndexFunc(set.Plugins, func(e map[string]any) bool { return e["name"] == more["name"] })
		if at < 0 {
			more["guard"], more["onLoss"] = map[string]any{"maxRemoved": "100%"}, "apply"
			set.Plugins = append(set.Plugins, more)
			continue
		}
		config, _ := set.Plugins[at]["config"].(map[string]any)
		if config == nil {
			config = map[string]any{}
		}
		given, _ := more["config"].(map[string]any)
		maps.Copy(config, given)
		set.Plugins[at]["config"] = config
	}
	if text, err = yaml.Marshal(set); err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}
