package istio

import (
	"maps"
	"slices"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestPods: a proxy's ports are those of the cluster's services that select its pod by labels,
// whether it is ready or not; without a pod that is known those that select what it says of itself:
// endpoints at its address may be those of another pod by now. A port for UDP is passed on as one
// for TCP is.
func TestPods(t *testing.T) {
	of := func(name string, selector map[string]string, ports ...*pb.Port) *sdk.Row {
		return sdk.ServiceRow(&pb.Service{
			Host: name + ".default.svc.cluster.local", Namespace: "default", Name: name, Registry: "Kubernetes", Cluster: "Kubernetes", Selector: selector,
			Addresses: []string{"10.96.0.1"}, Ports: ports,
		})
	}
	app := func(v string) map[string]string { return map[string]string{"app": v} }
	pod := func(labels map[string]string) *pb.TableRows {
		return rows(state.Workloads, sdk.WorkloadRow(&pb.Workload{
			Name: "client", Namespace: "default", Addresses: []string{"10.9.9.9"}, Labels: labels, Node: "one", Cluster: "Kubernetes",
			Ports: map[string]uint32{"named": 7000},
		}))
	}
	w := newWorld(t)
	w.commit(rows(state.Services,
		of("a", app("a"), &pb.Port{Number: 80, Name: "http", Protocol: "HTTP", Target: 8080},
			&pb.Port{Number: 81, Name: "n", Protocol: "HTTP", TargetName: "named"},
			&pb.Port{Number: 82, Name: "none", Protocol: "HTTP", TargetName: "unknown"}),
		of("b", app("b"), &pb.Port{Number: 90, Name: "http", Protocol: "HTTP"}),
		of("both", map[string]string{"app": "a", "tier": "x"}, &pb.Port{Number: 91, Name: "http", Protocol: "HTTP"})))
	says := func(more map[string]any) map[string]any {
		all := map[string]any{"LABELS": map[string]any{"app": "b"}, "NAMESPACE": "default"}
		maps.Copy(all, more)
		return all
	}
	w.attach(1, proxy(sidecarID, nil, says(nil)))
	inbound := func(connection uint64) (out []string) {
		for _, name := range []string{"inbound|7000||", "inbound|8080||", "inbound|90||", "inbound|91||"} {
			if w.get(connection, encode.ClusterType)[name] != nil {
				out = append(out, name)
			}
		}
		return out
	}
	for _, step := range []struct {
		what string
		rows *pb.TableRows
		want []string
	}{
		{"what it says", nil, []string{"inbound|90||"}},
		{"its pod", pod(app("a")), []string{"inbound|7000||", "inbound|8080||"}},
		{"more labels", pod(map[string]string{"app": "a", "tier": "x"}), []string{"inbound|7000||", "inbound|8080||", "inbound|91||"}},
		{"others", pod(app("b")), []string{"inbound|90||"}},
		{"gone", &pb.TableRows{Table: state.Workloads, Deletes: []string{"default/client"}}, []string{"inbound|90||"}},
		{"another pod at its address", rows(state.Endpoints, sdk.EndpointRow(&sdk.Endpoint{
			Host: "a.default.svc.cluster.local", Namespace: "default", ServicePort: 80, PortName: "http", Address: "10.9.9.9", Port: 8080, Labels: app("a"),
		})), []string{"inbound|90||"}},
	} {
		if step.rows != nil {
			w.commit(step.rows)
		}
		if got := inbound(1); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v, want %v", step.what, got, step.want)
		}
	}
	// A proxy that doesn't say its namespace is not the pod of its name; one of a cluster that
	// nobody serves from has no ports there.
	w.commit(pod(app("a")), rows(state.Endpoints, sdk.EndpointRow(&sdk.Endpoint{
		Host: "b.default.svc.cluster.local", Namespace: "default", ServicePort: 90, PortName: "http", Address: "10.9.9.8", Port: 90, Cluster: "Kubernetes",
	})))
	for i, c := range []struct {
		says map[string]any
		want []string
	}{
		{says(map[string]any{"CLUSTER_ID": "Kubernetes"}), []string{"inbound|7000||", "inbound|8080||"}},
		{says(map[string]any{"NAMESPACE": ""}), []string{"inbound|90||"}},
		{says(map[string]any{"NAMESPACE": "", "LABELS": map[string]any{}}), nil},
		{says(map[string]any{"CLUSTER_ID": "other"}), nil},
	} {
		w.attach(uint64(10+i), proxy(sidecarID, nil, c.says))
		if got := inbound(uint64(10 + i)); !slices.Equal(got, c.want) {
			t.Errorf("a proxy that says %v: %v, want %v", c.says, got, c.want)
		}
	}
	w.commit(&pb.TableRows{Table: state.Workloads, Deletes: []string{"default/client"}})
	// A WorkloadEntry behind a service says its ports itself.
	w.commit(rows(state.Endpoints, sdk.EndpointRow(&sdk.Endpoint{
		Host: "a.default.svc.cluster.local", Namespace: "default", ServicePort: 80, PortName: "http",
		Address: "10.9.9.7", Port: 7000, Workload: "vm", Cluster: "Kubernetes",
	})))
	w.attach(20,
		proxy("sidecar~10.9.9.7~vm.default~default.svc.cluster.local", nil, map[string]any{"NAMESPACE": "default", "LABELS": map[string]any{"app": "a"}}))
	if got, want := inbound(20), []string{"inbound|7000||"}; !slices.Equal(got, want) {
		t.Errorf("a WorkloadEntry: %v, want %v", got, want)
	}
	w.commit(rows(state.Services, of("c", app("b"), &pb.Port{Number: 53, Name: "dns", Protocol: "UDP"}, &pb.Port{Number: 54, Name: "tcp", Protocol: "TCP"})))
	chains := map[uint32]int{}
	for _, f := range w.listener(1, "virtualInbound").FilterChains {
		chains[f.FilterChainMatch.GetDestinationPort().GetValue()]++
	}
	if chains[53] == 0 || chains[53] != chains[54] {
		t.Errorf("chains by port: %v", chains)
	}
}
