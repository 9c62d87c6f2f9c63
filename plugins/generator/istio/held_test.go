package istio

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// patching is an EnvoyFilter with one patch.
func patching(t *testing.T, patch string) *pb.TableRows {
	t.Helper()
	return rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, "configPatches:\n- "+patch))
}

// TestWhatEnvoyWouldRefuseIsHeld makes one resource invalid: it stays as it was, others don't, the
// rows are named, and a fix takes it all back.
func TestWhatEnvoyWouldRefuseIsHeld(t *testing.T) {
	const (
		clusterPatch  = `{applyTo: CLUSTER, match: {cluster: {service: web.default.svc.cluster.local}}, patch: {operation: MERGE, value: %}}`
		listenerPatch = `{applyTo: NETWORK_FILTER, match: {listener: {name: virtualOutbound, filterChain: {filter: ` +
			`{name: envoy.filters.network.tcp_proxy}}}}, patch: {operation: MERGE, value: %}}`
		routePatch = `{applyTo: VIRTUAL_HOST, match: {context: SIDECAR_OUTBOUND}, patch: {operation: MERGE, value: %}}`
	)
	for _, c := range []struct {
		name, typeURL, resource, patch, good, bad, why string
	}{
		{
			"a field", encode.ClusterType, webCluster, clusterPatch,
			`{connect_timeout: 7s}`, `{connect_timeout: -1s}`, `Cluster "` + webCluster + `": invalid Cluster.ConnectTimeout`,
		},
		{
			"of a cluster that every proxy has", encode.ClusterType, "PassthroughCluster",
			`{applyTo: CLUSTER, match: {cluster: {name: PassthroughCluster}}, patch: {operation: MERGE, value: %}}`,
			`{connect_timeout: 7s}`, `{connect_timeout: -1s}`, `invalid Cluster.ConnectTimeout`,
		},
		{
			"wrapped", encode.ListenerType, "virtualOutbound", listenerPatch,
			`{typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, max_connect_attempts: 3}}`,
			`{typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, idle_timeout: 1s, max_connect_attempts: 0}}`,
			"invalid TcpProxy.MaxConnectAttempts",
		},
		{
			"wrapped and in place of another", encode.ListenerType, "virtualOutbound", listenerPatch,
			`{typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}`,
			`{typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy}}`,
			"invalid RedisProxy.StatPrefix",
		},
		{
			"in a map", encode.ClusterType, webCluster, clusterPatch,
			`{typed_extension_protocol_options: {x: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}}`,
			`{typed_extension_protocol_options: {x: {"@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy}}}`,
			`typed_extension_protocol_options["x"]`,
		},
		{
			"of a route", encode.RouteType, "80", routePatch,
			`{request_headers_to_remove: [a]}`, `{request_headers_to_remove: [""]}`, "RequestHeadersToRemove",
		},
		{
			"of what a patch adds", encode.ClusterType, "added", `{applyTo: CLUSTER, patch: {operation: ADD, value: %}}`,
			`{name: added}`, `{name: added, connect_timeout: -1s}`, `Cluster "added": invalid Cluster.ConnectTimeout`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			with := func(value string) *pb.TableRows { return patching(t, strings.Replace(c.patch, "%", value, 1)) }
			w := newWorld(t)
			w.commit(append(web("10.1.0.1"), with(c.good))...)
			w.attach(1, proxy(sidecarID, nil, nil))
			var names []string
			if c.typeURL == encode.RouteType {
				names = []string{c.resource}
			}
			good := w.get(1, c.typeURL, names...)[c.resource]
			if f := w.out.since(); good == nil || f != "" {
				t.Fatalf("%d bytes, faults %s", len(good), f)
			}
			w.commit(with(c.bad))
			if now := w.get(1, c.typeURL, names...)[c.resource]; !slices.Equal(now, good) {
				t.Errorf("it is no longer what it was")
			}
			if f := w.out.since(); !strings.Contains(f, c.why) || !strings.Contains(f, "Envoy would refuse") || !strings.Contains(f, "default/f") {
				t.Errorf("faults %q, want %s and the EnvoyFilter", f, c.why)
			}
			w.commit(patching(t, `{applyTo: CLUSTER, match: {cluster: {name: nosuch}}, patch: {operation: MERGE, value: {name: x}}}`))
			if now := w.get(1, c.typeURL, names...)[c.resource]; slices.Equal(now, good) || len(w.out.faults) > 0 {
				t.Errorf("after the fix: %d bytes, faults %v", len(now), w.out.faults)
			}
		})
	}
}

// TestPatchesThatComeLater adds a patch that breaks one of three listeners: it stays as it is
// without that patch, and the others go on.
func TestPatchesThatComeLater(t *testing.T) {
	w := newWorld(t)
	w.commit(append(web("10.1.0.1"), patching(t, `{applyTo: LISTENER, patch: {operation: MERGE, value: {stat_prefix: one}}}`))...)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.get(1, encode.ListenerType)
	before := w.out.placed[1][encode.ListenerType]
	w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches:
- {applyTo: LISTENER, patch: {operation: MERGE, value: {stat_prefix: two}}}
- {applyTo: LISTENER, match: {listener: {name: virtualInbound}}, patch: {operation: MERGE, value: {address: {socket_address: {port_value: 70000}}}}}`)))
	if w.out.placed[1][encode.ListenerType] == before {
		t.Fatal("patches make a view: this test needs another one")
	}
	got := w.get(1, encode.ListenerType)
	for name, port := range map[string]uint32{"virtualInbound": 15006, "virtualOutbound": 15001, "0.0.0.0_80": 80} {
		l := read(t, got[name], &listenerv3.Listener{})
		if l.StatPrefix != "two" || l.GetAddress().GetSocketAddress().GetPortValue() != port {
			t.Errorf("%s: %q at %v", name, l.StatPrefix, l.Address)
		}
	}
	if f := w.out.since(); !strings.Contains(f, "PortValue") || !strings.Contains(f, "default/f") {
		t.Errorf("faults %q", f)
	}
	w.commit(patching(t, `{applyTo: LISTENER, match: {listener: {name: virtualInbound}}, patch: {operation: REMOVE}}`))
	if got := w.get(1, encode.ListenerType); got["virtualInbound"] != nil || got["virtualOutbound"] == nil {
		t.Errorf("after a patch that removes it: %v", keysOf(got))
	}
}

// TestMadeWhenAskedFor is a resource that is wrong when the first proxy asks: it is not there, and
// said so at once.
func TestMadeWhenAskedFor(t *testing.T) {
	w := newWorld(t)
	w.commit(append(web("10.1.0.1"), patching(t,
		`{applyTo: CLUSTER, match: {cluster: {service: web.default.svc.cluster.local}}, patch: {operation: MERGE, value: {connect_timeout: -1s}}}`))...)
	if len(w.out.faults) > 0 {
		t.Fatalf("nobody has asked: %v", w.out.faults)
	}
	w.attach(1, proxy(sidecarID, nil, nil))
	got := w.get(1, encode.ClusterType)
	if got[webCluster] != nil || got["PassthroughCluster"] == nil {
		t.Errorf("%v", keysOf(got))
	}
	if f := w.out.since(); !strings.Contains(f, "ConnectTimeout") {
		t.Errorf("faults %q", f)
	}
}

func TestLoadAssignmentIsHeld(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	good := w.get(1, encode.EndpointType, webCluster)[webCluster]
	bad := sdk.EndpointRow(&sdk.Endpoint{
		Host: "web.default.svc.cluster.local", Namespace: "default", ServicePort: 80, PortName: "http",
		Address: "10.1.0.2", Port: 70000,
	})
	w.commit(rows(state.Endpoints, bad))
	if now := w.get(1, encode.EndpointType, webCluster)[webCluster]; !slices.Equal(now, good) {
		t.Error("it is no longer what it was")
	}
	if f := w.out.since(); !strings.Contains(f, "PortValue") || !strings.Contains(f, bad.Key) {
		t.Errorf("faults %q", f)
	}
	w.commit(&pb.TableRows{Table: state.Endpoints, Deletes: []string{bad.Key}})
	var a endpointv3.ClusterLoadAssignment
	if err := proto.Unmarshal(w.get(1, encode.EndpointType, webCluster)[webCluster], &a); err != nil || len(a.Endpoints) != 1 || len(w.out.faults) > 0 {
		t.Errorf("after the fix: %v %v, faults %v", &a, err, w.out.faults)
	}
}

// TestManyAreHeld: where one mistake makes hundreds of resources invalid, all stay as they were,
// and the faults of some are told.
func TestManyAreHeld(t *testing.T) {
	service := func(i int) *pb.Row {
		name := fmt.Sprintf("s%03d", i)
		return sdk.ServiceRow(&sdk.Service{Host: name + ".default.svc.cluster.local", Namespace: "default", Name: name,
			Addresses: []string{fmt.Sprintf("10.97.0.%d", i)}, Ports: []*sdk.Port{{Number: 80, Name: "http", Protocol: "HTTP"}}})
	}
	const all = 240
	var services []*pb.Row
	for i := range all {
		services = append(services, service(i))
	}
	patch := func(timeout string) *pb.TableRows {
		return patching(t, `{applyTo: CLUSTER, match: {cluster: {portNumber: 80}}, patch: {operation: MERGE, value: {connect_timeout: `+timeout+`}}}`)
	}
	w := newWorld(t)
	w.commit(rows(state.Services, services...), patch("7s"))
	w.attach(1, proxy(sidecarID, nil, nil))
	before := w.get(1, encode.ClusterType)
	if f := w.out.since(); f != "" || len(before) < all {
		t.Fatalf("%d clusters, faults %s", len(before), f)
	}
	w.commit(patch("-1s"))
	now := w.get(1, encode.ClusterType)
	for name, body := range before {
		if !slices.Equal(now[name], body) {
			t.Errorf("%s is no longer what it was", name)
		}
	}
	told := strings.Split(strings.TrimSpace(w.out.since()), "\n")
	if n := len(told); n != 101 || !strings.HasPrefix(told[n-1], "and more: 128 others or more failed, too") {
		t.Errorf("%d faults, the last %s", n, told[n-1])
	}
	w.commit(patch("8s"))
	if f := w.out.since(); f != "" {
		t.Errorf("faults after it was mended: %s", f)
	}
	if now := w.get(1, encode.ClusterType); slices.Equal(now["outbound|80||s200.default.svc.cluster.local"],
		before["outbound|80||s200.default.svc.cluster.local"]) {
		t.Error("they stay as they were")
	}
}
