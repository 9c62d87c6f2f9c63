package envoy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

type object = map[string]any

// verdict is a text of a file, what is written there of it, and the virtual host that has it.
type verdict struct {
	takes bool
	text  string
	host  object
}

// TestVerdictsAreEnvoys gives a real Envoy each text of the files by which sdk/envoyrules is
// tested: what is written there is what it says. Each stands in a listener of its own; Envoy
// refuses one without the others.
func TestVerdictsAreEnvoys(t *testing.T) {
	list := append(read(t, "formats.txt", func(text string) object {
		return object{"request_headers_to_add": []object{{"header": object{"key": "x-a", "value": text}}}}
	}), read(t, "regexes.txt", func(text string) object {
		return object{"routes": []object{{"match": object{"safe_regex": object{"regex": text}}, "route": object{"cluster": "c"}}}}
	})...)
	taken := taken(t, list)
	for i, v := range list {
		if taken[fmt.Sprint(i)] != v.takes {
			t.Errorf("of %q it is written that Envoy takes it: %v. It says otherwise", v.text, v.takes)
		}
	}
}

func read(t *testing.T, name string, host func(text string) object) []verdict {
	t.Helper()
	in, err := os.Open(filepath.Join("..", "..", "..", "sdk", "envoyrules", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	var out []verdict
	for s := bufio.NewScanner(in); s.Scan(); {
		word, quoted, _ := strings.Cut(s.Text(), " ")
		v := verdict{takes: word == "takes"}
		if err := json.Unmarshal([]byte(quoted), &v.text); err != nil {
			t.Fatal(err)
		}
		v.host = host(v.text)
		v.host["name"], v.host["domains"] = "v", []string{"*"}
		out = append(out, v)
	}
	return out
}

// taken are the places in the list of those that an Envoy takes.
func taken(t *testing.T, list []verdict) map[string]bool {
	t.Helper()
	const extensions = "type.googleapis.com/envoy.extensions.filters."
	var resources []object
	for i, v := range list {
		manager := object{
			"@type": extensions + "network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "s",
			"route_config": object{"name": "r", "validate_clusters": false, "virtual_hosts": []object{v.host}},
			"http_filters": []object{{"name": "router", "typed_config": object{"@type": extensions + "http.router.v3.Router"}}},
		}
		resources = append(resources, object{
			"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": fmt.Sprint(i), "bind_to_port": false,
			"address":       object{"socket_address": object{"address": "127.0.0.1", "port_value": 10000 + i}},
			"filter_chains": []object{{"filters": []object{{"name": "h", "typed_config": manager}}}},
		})
	}
	file := filepath.Join(t.TempDir(), "lds.json")
	write(t, file, object{"version_info": "1", "resources": resources})
	address := wait.Address(t)
	host, port, _ := strings.Cut(address, ":")
	bootstrap, err := json.Marshal(object{
		"node":  object{"id": "verdicts", "cluster": "test"},
		"admin": object{"address": object{"socket_address": object{"address": host, "port_value": json.Number(port)}}},
		"layered_runtime": object{"layers": []object{{"name": "static", "static_layer": object{
			"re2.max_program_size.error_level": envoyrules.MaxProgram,
		}}}},
		"dynamic_resources": object{"lds_config": object{"resource_api_version": "V3", "path_config_source": object{"path": file}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	e := envoy.Start(t, "verdicts", address, bootstrap)
	e.Ready(t)
	wait.For(t, "its answer", func() error {
		if s := e.Stats(t); s["listener_manager.lds.update_rejected"]+s["listener_manager.lds.update_success"] == 0 {
			return fmt.Errorf("none yet")
		}
		return nil
	})
	return names(t, e.ConfigDump(t))
}

func write(t *testing.T, file string, content object) {
	t.Helper()
	b, err := json.Marshal(content)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// names are those of the listeners that an Envoy has.
func names(t *testing.T, dump string) map[string]bool {
	t.Helper()
	var in struct {
		Configs []struct {
			Dynamic []struct {
				Name   string `json:"name"`
				Active any    `json:"active_state"`
			} `json:"dynamic_listeners"`
		} `json:"configs"`
	}
	if err := json.Unmarshal([]byte(dump), &in); err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, c := range in.Configs {
		for _, l := range c.Dynamic {
			if l.Active != nil {
				out[l.Name] = true
			}
		}
	}
	return out
}
