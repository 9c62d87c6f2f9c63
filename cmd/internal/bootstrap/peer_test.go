package bootstrap

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var update = flag.Bool("update", false, "record anew what pilot-agent writes (make peer builds it)")

// recorded is what pilot-agent wrote, without what differs.
const recorded = "testdata/peer.txt"

// differs are the parts of a bootstrap that are otherwise, by how their paths begin, and why.
var differs = []struct{ path, why string }{
	{"admin/access_log", "of Envoy's own pages"},
	{"admin/profile_path", "of Envoy's own pages"},
	{"application_log_config", "of Envoy's own log"},
	{"bootstrap_extensions/envoy.bootstrap.internal_listener", "theirs is a typed struct that says the same"},
	{"deferred_stat_options", "of metrics"},
	{"dynamic_resources/cds_config/initial_fetch_timeout", "where no plugin makes clusters, Envoy is ready without, after 15 s"},
	{"dynamic_resources/lds_config/initial_fetch_timeout", "where no plugin makes listeners, Envoy is ready without, after 15 s"},
	{"layered_runtime/layers/global config", "the layer has another name; what is in it is compared apart"},
	{"layered_runtime/layers/static", "as above"},
	{"node/metadata/COXSWAIN_NO_AGENT", "there is no agent"},
	{"node/metadata/COXSWAIN_REGEX_PROGRAM", "tells coxswain analyze what an agent's version says"},
	{"node/metadata/ENVOY_", "ports of an agent's pages"},
	{"node/metadata/INSTANCE_IPS", "an agent adds those of the machine"},
	{"node/metadata/ISTIO_VERSION", "a build that was made by hand has none"},
	{"node/metadata/METADATA_DISCOVERY", "of Istio's own builds of Envoy"},
	{"node/metadata/PILOT_SAN", "what an agent believes of its control plane"},
	{"node/metadata/PROXY_CONFIG", "what an agent was told; --metadata adds what counts here"},
	{"node/metadata/SERVICE_ACCOUNT", "credentials say whose a proxy is; --metadata adds it"},
	{"node/metadata/STATIC_LABELS", "an agent's own copy of the labels"},
	{"node/metadata/WORKLOAD_IDENTITY_SOCKET_FILE", "an agent's"},
	{"node/metadata/app", "an agent's own copy of a label"},
	{"overload_manager", "says that there is no limit, as without it"},
	{"static_resources/clusters/agent", "an agent's"},
	{"static_resources/clusters/prometheus_stats", "an agent's"},
	{"static_resources/clusters/sds-grpc", "an agent's"},
	{"static_resources/clusters/xds-grpc/alt_stat_name", "of metrics"},
	{"static_resources/clusters/xds-grpc/circuit_breakers", "there is one stream"},
	{"static_resources/clusters/xds-grpc/load_assignment", "an agent's socket"},
	{"static_resources/clusters/xds-grpc/lb_policy", "there is one address"},
	{"static_resources/clusters/xds-grpc/max_requests_per_connection", "there is one stream"},
	{"static_resources/clusters/xds-grpc/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions/" +
		"explicit_http_config/http2_protocol_options", "without an agent nobody else notices a dead connection (connection_keepalive)"},
	{"static_resources/listeners", "an agent's pages"},
	{"stats_config", "which metrics there are, and their tags"},
}

// flat is a document with a line for each value: its path, and what it is.
func flat(t *testing.T, raw []byte) map[string]string {
	t.Helper()
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(strings.TrimPrefix(path+"/"+k, "/"), x)
			}
			if len(v) == 0 {
				out[path] = "{}"
			}
		case []any:
			for i, x := range v {
				key := strconv.Itoa(i)
				if m, ok := x.(map[string]any); ok && m["name"] != nil {
					key = fmt.Sprint(m["name"])
				}
				walk(path+"/"+key, x)
			}
		default:
			out[path] = fmt.Sprint(v)
		}
	}
	walk("", doc)
	maps.DeleteFunc(out, func(path, value string) bool { return value == "{}" && path == "node/locality" })
	return out
}

// same is what of a bootstrap is not known to differ. used notes what was.
func same(all map[string]string, used map[string]bool) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(path, _ string) bool {
		for _, d := range differs {
			if strings.HasPrefix(path, d.path) {
				used[d.path] = true
				return true
			}
		}
		return false
	})
	return out
}

// runtime are the values of the layers of a bootstrap that stand in it.
func runtime(all map[string]string) map[string]string {
	out := map[string]string{}
	for path, value := range all {
		if _, name, ok := strings.Cut(path, "/static_layer/"); ok {
			out[name] = value
		}
	}
	return out
}

func lines(m map[string]string) (out []string) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+" = "+m[k])
	}
	return out
}

// likePeer is the config of the proxy that pilot-agent is started for.
func likePeer() Config {
	c := good()
	c.Locality, c.Protocol, c.Admin = "", Delta, "127.0.0.1:15000"
	return c
}

// TestAsPeer: `coxswain bootstrap` says what pilot-agent writes, but for what is listed.
func TestAsPeer(t *testing.T) {
	raw, err := New(likePeer())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	all := flat(t, raw)
	got := lines(same(all, map[string]bool{}))
	for name, value := range runtime(all) {
		got = append(got, "runtime "+name+" = "+value)
	}
	slices.Sort(got)
	if text := strings.Join(got, "\n") + "\n"; text != string(want) {
		t.Errorf("it says\n%s\nand pilot-agent\n%s", text, want)
	}
}

// TestPeer: what is recorded is what pilot-agent writes, and each difference is one.
func TestPeer(t *testing.T) {
	need.All(t)
	theirs := flat(t, written(t))
	raw, err := New(likePeer())
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	text := lines(same(theirs, used))
	for name, value := range runtime(theirs) {
		text = append(text, "runtime "+name+" = "+value)
	}
	slices.Sort(text)
	same(flat(t, raw), used)
	for _, d := range differs {
		if !used[d.path] {
			t.Errorf("%s is in neither", d.path)
		}
	}
	all := strings.Join(text, "\n") + "\n"
	if *update {
		if err := os.WriteFile(recorded, []byte(all), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(recorded); err != nil || string(was) != all {
		t.Errorf("%v: recorded is\n%s\nand pilot-agent writes\n%s", err, was, all)
	}
}

// written is the bootstrap that pilot-agent has for the Envoy that it starts, here a script.
func written(t *testing.T) []byte {
	t.Helper()
	bin := program.Built(t, "test/peer", "peer", "pilot-agent")
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio")
	list.Dir = "../../../test/peer"
	module, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := likePeer()
	server := httptest.NewTLSServer(nil)
	server.Close()
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	script, copied := filepath.Join(dir, "envoy"), filepath.Join(dir, "copied.json")
	for path, text := range map[string]string{
		script: "#!/bin/sh\ncp \"$2\" " + copied + "\n",
		filepath.Join(dir, "var/run/secrets/tokens/istio-token"):  "token",
		filepath.Join(dir, "var/run/secrets/istio/root-cert.pem"): string(roots),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	config, err := json.Marshal(map[string]any{
		"discoveryAddress": "localhost:1", "binaryPath": script, "configPath": "./etc/istio/proxy", "statusPort": 15020, "proxyAdminPort": 15000,
		"proxyBootstrapTemplatePath": filepath.Join(strings.TrimSpace(string(module)), "tools/packaging/common/envoy_bootstrap.json"),
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "pilot-agent"), "proxy", c.Type, "--domain", c.Namespace+".svc."+c.Domain)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PROXY_CONFIG="+string(config), "POD_NAME="+c.Name, "POD_NAMESPACE="+c.Namespace, "INSTANCE_IP="+c.IP,
		"SERVICE_ACCOUNT=client", "ISTIO_META_CLUSTER_ID="+c.ClusterID, "TRUST_DOMAIN="+c.Domain, `ISTIO_METAJSON_LABELS={"app":"client"}`)
	p := program.Start(t, cmd)
	var raw []byte
	wait.For(t, "pilot-agent has written a bootstrap", func() (err error) {
		if raw, err = os.ReadFile(copied); err == nil && !json.Valid(raw) {
			err = errors.New("there is a part of it")
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, p.Last())
		}
		return nil
	})
	return raw
}
