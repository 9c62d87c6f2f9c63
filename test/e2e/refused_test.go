package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const (
	staticSet = `
plugins:
- name: edge
  kind: generator
  builtin: generator/static
  config: {dir: %s}
`
	staticListener = `
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: http
  address: {socket_address: {address: 127.0.0.1, port_value: %d}}
  filter_chains:
  - filters:
    - name: envoy.filters.network.http_connection_manager
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: in
        rds: {route_config_name: main, config_source: {ads: {}, resource_api_version: V3}}
        http_filters:
        - name: envoy.filters.http.router
          typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
`
	staticRoute = `
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: main
  virtual_hosts:
`
	staticHost = `
  - name: %s
    domains: ["*"]
    routes:
    - {match: {prefix: /}, direct_response: {status: 200, body: {inline_string: %s}}}
`
	staticCluster = `
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: %s, connect_timeout: 1s}
`
	// missing is a host that no Envoy takes, which nobody but an Envoy can know.
	missing = `
  - name: missing
    domains: [missing.example]
    routes:
    - {match: {prefix: /}, direct_response: {status: 200, body: {filename: /there/is/no/such/file}}}
`
	rejected = "http.in.rds.main.update_rejected"
)

// TestRefused lets Envoy refuse a route configuration for one of its virtual hosts: it gets the
// others, other changes arrive, and so does a better one. What is served comes from
// generator/static alone: nothing of Istio is in it.
func TestRefused(t *testing.T) {
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) { refused(t, protocol) })
	}
}

func refused(t *testing.T, protocol string) {
	envoy.Binary(t) // or skip
	dir, port := t.TempDir(), wait.Port(t)
	set := filepath.Join(t.TempDir(), "plugins.yaml")
	if err := os.WriteFile(set, fmt.Appendf(nil, staticSet, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) { place(t, filepath.Join(dir, name+".yaml"), text) }
	host := func(name string) string { return fmt.Sprintf(staticHost, name, name) }
	file("listener", fmt.Sprintf(staticListener, port))
	file("route", staticRoute+host("first"))
	file("clusters", fmt.Sprintf(staticCluster, "one"))

	plane := mesh.Start(t, program, "", "--plugins", set)
	plane.Ready(t)
	admin := wait.Address(t)
	e := envoy.Start(t, "edge", admin, plane.Bootstrap(t, "--protocol", protocol, "--admin", admin))
	e.Ready(t)
	target := mesh.Target{Address: local(port), Host: "any.example", Path: "/"}
	only(t, target, "first")
	clients := mesh.NewTraffic(t, target)

	file("route", staticRoute+host("second")+missing)
	only(t, target, "second")
	counted(t, e, rejected, 1) // all of it: what is left without that host is taken
	wait.For(t, "/debug/streams says what was refused", func() error { return says(plane, true) })
	file("clusters", fmt.Sprintf(staticCluster, "one")+fmt.Sprintf(staticCluster, "two"))
	counted(t, e, "cluster_manager.active_clusters", 3) // the third is the control plane
	counted(t, e, rejected, 1)

	file("route", staticRoute+host("third"))
	only(t, target, "third")
	counted(t, e, rejected, 1)
	wait.For(t, "/debug/streams says that all is well", func() error { return says(plane, false) })
	if _, failed := clients.Stop(); len(failed) > 0 {
		t.Error(failed)
	}
	if got := target.Shares(context.Background(), 1); got["third"] != 1 {
		t.Errorf("got %v", got)
	}
}

// counted waits until a statistic has a value.
func counted(t *testing.T, e *envoy.Envoy, stat string, want int) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%s is %d", stat, want), func() error {
		if got := e.Stats(t)[stat]; got != want {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
}

func says(plane *mesh.Plane, refused bool) error {
	page, err := plane.Get("/debug/streams")
	if err == nil && strings.Contains(page, `"refused"`) != refused {
		err = fmt.Errorf("it says %s", page)
	}
	return err
}
