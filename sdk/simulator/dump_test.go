package simulator

import (
	"strings"
	"testing"
)

// What Envoy 1.40 and the control plane show, shortened.
const shown = `{"configs": [
 {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"node": {"id": "n"}}},
 {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump",
  "static_listeners": [{"listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "admin"}}],
  "dynamic_listeners": [
   {"name": "l", "active_state": {"version_info": "1", "listener": {"@type": "type.googleapis.com/envoy.config.listener.v3.Listener", "name": "l",
     "listener_filters": [{"name": "f", "typed_config": {"@type": "type.googleapis.com/nobody.knows.This", "field": 1}}]}}},
   {"name": "warming", "warming_state": {"version_info": "1"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
  "static_clusters": [{"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "xds"}}],
  "dynamic_active_clusters": [{"cluster": {"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "c"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump",
  "dynamic_route_configs": [{"route_config": {"@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "name": "r"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump",
  "dynamic_endpoint_configs": [{"endpoint_config": {"@type": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", "cluster_name": "c"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.EcdsConfigDump",
  "ecds_filters": [{"ecds_filter": {"@type": "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", "name": "e"}}]}
]}`

func TestRead(t *testing.T) {
	c, err := Read([]byte(shown))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Listeners) != 2 || len(c.Clusters) != 2 || c.routes("r") == nil || c.assignment("c") == nil || c.filter("e") == nil || c.cluster("xds") == nil {
		t.Errorf("%+v", c)
	}
	if _, err := Read([]byte(strings.Replace(shown, `"name": "r"`, `"name": 1`, 1))); err == nil || !strings.Contains(err.Error(), "RouteConfiguration") {
		t.Errorf("a broken route configuration: %v", err)
	}
	if _, err := Read([]byte("<html>")); err == nil {
		t.Error("a page that is no dump is read")
	}
}
