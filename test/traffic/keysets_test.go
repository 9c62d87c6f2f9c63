package traffic

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
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
	var taken []string
	for _, c := range all {
		if c.OK {
			taken = append(taken, c.Text)
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			said, err := judge(t, program, c.Text)
			if err == nil || !strings.Contains(said, "jwks") {
				t.Errorf("%v, want it to be refused: %s", err, said)
			}
		})
	}
	if said, err := judge(t, program, taken...); err != nil {
		t.Errorf("one is refused: %s", said)
	}
}

// judge has an Envoy look at a configuration with key sets. The error says that it refuses it.
func judge(t *testing.T, program string, sets ...string) (said string, err error) {
	t.Helper()
	config := filepath.Join(t.TempDir(), "envoy.json")
	put(t, config, checksBy(t, sets))
	b, err := exec.Command(program, "--mode", "validate", "-c", config).CombinedOutput()
	return string(b), err
}

// checksBy is Envoy's bootstrap with a listener that checks tokens by key sets.
func checksBy(t *testing.T, sets []string) string {
	t.Helper()
	type m = map[string]any
	filter := func(name, kind string, more m) m {
		more["@type"] = "type.googleapis.com/envoy.extensions.filters." + kind
		return m{"name": name, "typed_config": more}
	}
	providers := m{}
	for i, keys := range sets {
		providers[strconv.Itoa(i)] = m{"issuer": "i", "local_jwks": m{"inline_string": keys}}
	}
	http := filter("http", "network.http_connection_manager.v3.HttpConnectionManager", m{
		"stat_prefix": "x", "route_config": m{},
		"http_filters": []m{
			filter("jwt", "http.jwt_authn.v3.JwtAuthentication", m{"providers": providers}),
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
