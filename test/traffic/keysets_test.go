package traffic

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/envoy"
)

// TestKeySets: a real Envoy takes the key sets that are known to be taken, and refuses the others.
// generator/istio goes by that (plugins/internal/keysets/usable).
func TestKeySets(t *testing.T) {
	program := envoy.Binary(t)
	var all []struct {
		Name, Text string
		OK         bool
	}
	text := read(t, "../../plugins/internal/keysets/usable/testdata/sets.json")
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "envoy.json")
			put(t, config, checksBy(t, c.Text))
			said, err := exec.Command(program, "--mode", "validate", "-c", config).CombinedOutput()
			if (err == nil) != c.OK {
				t.Errorf("taken: %v, want %v: %s", err == nil, c.OK, said)
			}
			if err != nil && !strings.Contains(string(said), "jwks") {
				t.Errorf("refused for something else: %s", said)
			}
		})
	}
}

// checksBy is Envoy's bootstrap with a listener that checks tokens by a key set.
func checksBy(t *testing.T, keys string) string {
	t.Helper()
	type m = map[string]any
	filter := func(name, kind string, more m) m {
		more["@type"] = "type.googleapis.com/envoy.extensions.filters." + kind
		return m{"name": name, "typed_config": more}
	}
	provider := m{"issuer": "i", "local_jwks": m{"inline_string": keys}}
	http := filter("http", "network.http_connection_manager.v3.HttpConnectionManager", m{
		"stat_prefix": "x", "route_config": m{},
		"http_filters": []m{
			filter("jwt", "http.jwt_authn.v3.JwtAuthentication", m{"providers": m{"p": provider}}),
			filter("router", "http.router.v3.Router", m{}),
		},
	})
	b, err := json.Marshal(m{"static_resources": m{"listeners": []m{{
		"address":       m{"socket_address": m{"address": "127.0.0.1", "port_value": 0}},
		"filter_chains": []m{{"filters": []m{http}}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
