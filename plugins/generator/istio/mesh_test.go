package istio

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// meshSize is a mesh in which every tenth service has a rule with two subsets and a virtual
// service.
type meshSize struct{ services, endpoints, namespaces int }

func (m meshSize) namespace(i int) string { return fmt.Sprintf("ns-%03d", i%m.namespaces) }
func (m meshSize) name(i int) string      { return fmt.Sprintf("svc-%04d", i) }
func (m meshSize) host(i int) string      { return m.name(i) + "." + m.namespace(i) + ".svc.cluster.local" }
func (m meshSize) key(i int) string       { return m.namespace(i) + "/" + m.name(i) }
func (m meshSize) ruled(i int) bool       { return i%10 == 0 }

// rows are all that the mesh has.
func (m meshSize) rows() []*pb.TableRows {
	services, endpoints := rows(state.Services), rows(state.Endpoints)
	rules, routes := rows(config.DestinationRules), rows(config.VirtualServices)
	for i := range m.services {
		services.Upserts = append(services.Upserts, m.service(i))
		for e := range m.endpoints {
			endpoints.Upserts = append(endpoints.Upserts, m.endpoint(i, e, address(10, 1<<23+i*m.endpoints+e)))
		}
		if m.ruled(i) {
			rules.Upserts = append(rules.Upserts, m.rule(i))
			routes.Upserts = append(routes.Upserts, m.virtualService(i, "route-default"))
		}
	}
	return []*pb.TableRows{services, endpoints, rules, routes}
}

func address(first, n int) string {
	return fmt.Sprintf("%d.%d.%d.%d", first, n>>16&255, n>>8&255, n&255)
}

func (m meshSize) service(i int) *pb.Row {
	return sdk.ServiceRow(&sdk.Service{Host: m.host(i), Namespace: m.namespace(i), Name: m.name(i),
		Addresses: []string{address(10, 96<<16+i+1)}, Ports: []*sdk.Port{{Number: 8080, Name: "http", Protocol: "HTTP"}}})
}

func (m meshSize) endpoint(i, e int, address string) *pb.Row {
	row := sdk.EndpointRow(&sdk.Endpoint{Host: m.host(i), Namespace: m.namespace(i), PortName: "http", ServicePort: 8080,
		Address: address, Port: 8080, Labels: map[string]string{"app": m.name(i), "version": fmt.Sprintf("v%d", 1+e%2)},
		ServiceAccount: "default", TlsMode: "istio", Workload: m.name(i), Index: uint32(e)})
	row.Key = fmt.Sprintf("%s/%d", m.key(i), e)
	return row
}

func (m meshSize) rule(i int) *pb.Row {
	return resource(m.key(i), &networking.DestinationRule{
		Host: m.host(i),
		TrafficPolicy: &networking.TrafficPolicy{
			ConnectionPool: &networking.ConnectionPoolSettings{
				Tcp:  &networking.ConnectionPoolSettings_TCPSettings{MaxConnections: 100},
				Http: &networking.ConnectionPoolSettings_HTTPSettings{Http2MaxRequests: 1000},
			},
			OutlierDetection: &networking.OutlierDetection{
				Consecutive_5XxErrors: wrapperspb.UInt32(7),
				Interval:              &durationpb.Duration{Seconds: 300},
				BaseEjectionTime:      &durationpb.Duration{Seconds: 900},
			},
		},
		Subsets: []*networking.Subset{
			{Name: "v1", Labels: map[string]string{"version": "v1"}},
			{Name: "v2", Labels: map[string]string{"version": "v2"}},
		},
	})
}

func (m meshSize) virtualService(i int, route string) *pb.Row {
	to := func(subset string) *networking.Destination {
		return &networking.Destination{Host: m.host(i), Subset: subset}
	}
	exact := &networking.StringMatch{MatchType: &networking.StringMatch_Exact{Exact: "true"}}
	return resource(m.key(i), &networking.VirtualService{
		Hosts: []string{m.host(i)},
		Http: []*networking.HTTPRoute{
			{Name: "canary", Match: []*networking.HTTPMatchRequest{{Headers: map[string]*networking.StringMatch{"x-canary": exact}}},
				Route: []*networking.HTTPRouteDestination{{Destination: to("v2")}}},
			{Name: route, Timeout: &durationpb.Duration{Seconds: 10},
				Retries: &networking.HTTPRetry{Attempts: 3, PerTryTimeout: &durationpb.Duration{Seconds: 2}},
				Route:   []*networking.HTTPRouteDestination{{Destination: to("v1"), Weight: 90}, {Destination: to("v2"), Weight: 10}}},
		},
	})
}

// clusters that a sidecar asks endpoints of.
func (m meshSize) clusters() []string {
	var out []string
	for i := range m.services {
		out = append(out, "outbound|8080||"+m.host(i))
		if m.ruled(i) {
			out = append(out, "outbound|8080|v1|"+m.host(i), "outbound|8080|v2|"+m.host(i))
		}
	}
	return out
}

// fleet is an engine with sidecars that want all that Envoys would.
type fleet struct {
	*world
	size meshSize
	told *tally
}

// tally is an Output that only counts.
type tally struct {
	*recorder
	bytes, resources int
}

func (t *tally) Part(_ string, _ uint64, upserts []sdk.Resource, _ []string) { t.add(upserts) }

func (t *tally) Change(_ string, _ uint64, _ []uint64, upserts []sdk.Resource, _ []string) {
	t.add(upserts)
}

func (t *tally) add(upserts []sdk.Resource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range upserts {
		t.bytes += len(u.Body) + len(bytes.Join(u.Fields, nil))
		t.resources++
	}
}

func newFleet(t testing.TB, size meshSize) *fleet {
	f := &fleet{world: newWorld(t), size: size, told: &tally{recorder: newRecorder()}}
	f.change(size.rows()...)
	return f
}

// change commits rows.
func (f *fleet) change(tables ...*pb.TableRows) {
	f.t.Helper()
	f.revision++
	change, err := f.builder.Apply(&pb.State{Revision: &pb.Revision{Number: f.revision}, Whole: f.builder.State() == nil, Tables: tables})
	if err == nil {
		err = f.e.Commit(context.Background(), change, f.told)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// connect attaches a sidecar of the ith namespace, which asks for everything.
func (f *fleet) connect(i int) {
	f.t.Helper()
	ns := f.size.namespace(i)
	p := proxy(fmt.Sprintf("sidecar~%s~load-%d.%s~%s.svc.cluster.local", address(10, 200<<16+i+1), i, ns, ns), nil, nil)
	p.Connection = uint64(i + 1)
	p.Types = []string{encode.ClusterType, encode.EndpointType, encode.ListenerType, encode.RouteType}
	if err := f.e.Attach(context.Background(), p, f.told); err != nil {
		f.t.Fatal(err)
	}
	f.want(p.Connection, encode.ClusterType)
	f.want(p.Connection, encode.EndpointType, f.size.clusters()...)
	f.want(p.Connection, encode.ListenerType)
	f.want(p.Connection, encode.RouteType, "8080")
}

// leave detaches the sidecar and drops its views, as if no other proxy had them.
func (f *fleet) leave(i int) {
	c := uint64(i + 1)
	f.e.Detach(c)
	for typeURL, view := range f.told.placed[c] {
		f.e.Drop(typeURL, view, nil, true)
	}
}

func (f *fleet) want(connection uint64, typeURL string, names ...string) {
	f.t.Helper()
	if err := f.e.Want(context.Background(), typeURL, f.told.placed[connection][typeURL], names, f.told); err != nil {
		f.t.Fatal(err)
	}
}
