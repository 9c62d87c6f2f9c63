package parity

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kube"
)

// start is how the two are started in a state, where it is not as always: its start.yaml.
type start struct {
	// Istiod is added to its environment, Coxswain to our flags: what means the same. Flags are
	// added to those of both.
	Istiod, Coxswain, Flags []string
	// Plugins are entries of plugins.yaml. One of a name that the set has adds to its config;
	// others are added.
	Plugins []map[string]any
	// GatewayAPI: the cluster has the definitions of the Gateway API, too; with Experimental those
	// of its experimental channel.
	GatewayAPI, Experimental bool
	// Statuses: what both write of the objects is compared, too, and what both deploy for Gateways.
	Statuses bool
}

// definitions are those of the Gateway API that the state asks for; empty if it asks for none.
func (s start) definitions(t *testing.T) string {
	t.Helper()
	switch {
	case s.Experimental:
		return kube.ExperimentalGatewayAPI(t)
	case s.GatewayAPI:
		return kube.GatewayAPI(t)
	}
	return ""
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

// set is the file with the set for a cluster, without guards, that the state asks for. Where
// statuses are compared it writes none and deploys nothing: beside an istiod that does. The set
// that writes does both, and waits for nobody.
func (s start) set(t *testing.T, writes bool) string {
	t.Helper()
	file := unguarded(t)
	if len(s.Plugins) == 0 && !s.Statuses {
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
		given, _ := more["config"].(map[string]any)
		configure(set.Plugins[at], given)
	}
	for _, e := range set.Plugins {
		if writer := e["name"] == "status" || e["name"] == "deployments" || e["name"] == "ingress-status"; !writer || !s.Statuses {
			continue
		}
		e["disabled"] = !writes
		configure(e, map[string]any{"alone": true})
	}
	if text, err = yaml.Marshal(set); err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// configure adds to an entry's config.
func configure(entry, more map[string]any) {
	config, _ := entry["config"].(map[string]any)
	if config == nil {
		config = map[string]any{}
	}
	maps.Copy(config, more)
	entry["config"] = config
}
