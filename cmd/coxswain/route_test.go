package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A sidecar and a gateway, as the control plane's pages show them.
const (
	streams = `{"streams": [
 {"node": "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local"}, {"node": "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local"},
 {"node": "sidecar~10.0.0.2~db.shop~shop.svc.cluster.local"}, {"node": "router~10.0.0.3~gw.edge~edge.svc.cluster.local"}]}`
	routed = `{"configs": [
 {"dynamic_listeners": [
  {"active_state": {"listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "out", "use_original_dst": true,
    "address": {"socket_address": {"address": "0.0.0.0", "port_value": 15001}}}}},
  {"active_state": {"listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "all", "bind_to_port": false,
    "address": {"socket_address": {"address": "0.0.0.0", "port_value": 80}}, "filter_chains": [{"filters": [{"name": "http", "typed_config": {
     "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "rds": {"route_config_name": "80"},
     "http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]}}},
  {"active_state": {"listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "in",
    "address": {"socket_address": {"address": "0.0.0.0", "port_value": 15006}}, "listener_filters": [{"name": "envoy.filters.listener.original_dst"}],
    "filter_chains": [{"filter_chain_match": {"destination_port": 8080}, "filters": [{"name": "tcp", "typed_config": {
     "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster": "inbound"}}]}]}}}]},
 {"dynamic_route_configs": [{"route_config": {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": "80",
   "virtual_hosts": [{"name": "shop", "domains": ["shop.example"], "routes": [
    {"match": {"prefix": "/", "headers": [{"name": "end-user", "string_match": {"exact": "jason"}}]}, "direct_response": {"status": 418}},
    {"match": {"prefix": "/"}, "route": {"cluster": "outbound"}}]}]}}]},
 {"dynamic_active_clusters": [
  {"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "outbound", "type": "EDS"}},
  {"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "inbound", "type": "ORIGINAL_DST", "lb_policy": "CLUSTER_PROVIDED"}}]},
 {"dynamic_endpoint_configs": [{"endpoint_config": {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "outbound",
   "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "10.0.0.9", "port_value": 8080}}}}]}]}}]}
]}`
)

func TestRoute(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/streams", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(streams)) })
	mux.HandleFunc("/debug/config_dump", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("proxyID") != "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local" {
			http.Error(w, "another one", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(routed))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "dump.json")
	if err := os.WriteFile(file, []byte(routed), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		in   string
		code int
		want []string
	}{
		{[]string{"web.shop", "http://shop.example/"}, "", 0, []string{"handed the connection", "forwarded", "10.0.0.9:8080"}},
		{[]string{"web.shop", "http://shop.example/", "-H", "end-user: jason"}, "", 0, []string{"answered", "status 418"}},
		{[]string{"web.shop", "http://other.example/"}, "", 0, []string{"status 404"}},
		{[]string{"web.shop", "http://anything:8080/", "--inbound"}, "", 0, []string{"10.0.0.1:8080", "inbound"}},
		{[]string{"web.shop", "tcp://10.0.0.1:9999", "--inbound"}, "", 0, []string{"closed: no filter chain"}},
		{[]string{"web.shop", "http://shop.example/", "-o", "json"}, "", 0, []string{`"Verdict": "forwarded"`}},
		{[]string{"--dump", file, "--outbound", "http://shop.example/"}, "", 0, []string{"forwarded"}},
		{[]string{"--dump", "-", "--outbound", "http://shop.example/"}, routed, 0, []string{"forwarded"}},
		{[]string{"nobody", "http://shop.example/"}, "", 1, []string{`no proxy "nobody" is connected`, "gw.edge"}},
		{[]string{"web.shop", "shop.example/"}, "", 2, []string{"http://HOST"}},
		{[]string{"web.shop", "http://shop.example/", "--inbound", "--outbound"}, "", 2, []string{"either"}},
		{[]string{"web.shop", "http://shop.example/", "--to", "here"}, "", 2, []string{"--to is IP:PORT"}},
		{[]string{"http://shop.example/"}, "", 2, []string{"wants NODE URL"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var out, complaint bytes.Buffer
			args := append([]string{"route", "--addr", strings.TrimPrefix(s.URL, "http://")}, c.args...)
			if code := run(t.Context(), args, nil, strings.NewReader(c.in), &out, &complaint); code != c.code {
				t.Errorf("exit code %d, want %d: %s", code, c.code, complaint.String())
			}
			for _, want := range c.want {
				if !strings.Contains(out.String()+complaint.String(), want) {
					t.Errorf("no %q in:\n%s%s", want, out.String(), complaint.String())
				}
			}
		})
	}
}
