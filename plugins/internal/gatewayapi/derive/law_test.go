package derive_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/derive"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// rows are what a graph was given, by table and key.
type rows map[state.Name]*pb.Row

// TestLaw: whatever was there before, what is derived is what a new graph derives of the same rows.
func TestLaw(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		now, g := rows{}, incr.New(incr.Workers(1))
		in := derive.NewInputs(g)
		d := derive.New(g, in, derive.Config{Domain: "cluster.local", AllCredentials: true})
		for range 60 {
			n, row := edit(random)
			if now[n] = row; row == nil {
				delete(now, n)
			}
			load(t, in, n, row)
			if random.IntN(3) > 0 {
				continue // several edits in one wave
			}
			g.Wave()
			if f := g.Failures(); len(f) > 0 {
				t.Fatal(f)
			}
			if diff := cmp.Diff(fresh(t, now), everything(d), protocmp.Transform()); diff != "" {
				t.Fatalf("of %d rows, - from scratch, + step by step:\n%s", len(now), diff)
			}
		}
	}
}

func load(t *testing.T, in *derive.Inputs, n state.Name, row *pb.Row) {
	t.Helper()
	if err := in.Load(n.Table, n.Key, row); err != nil {
		t.Fatal(err)
	}
}

func fresh(t *testing.T, of rows) map[string]resource {
	t.Helper()
	g := incr.New(incr.Workers(1))
	in := derive.NewInputs(g)
	d := derive.New(g, in, derive.Config{Domain: "cluster.local", AllCredentials: true})
	for _, n := range slices.SortedFunc(maps.Keys(of), func(a, b state.Name) int { return cmpNames(a, b) }) {
		load(t, in, n, of[n])
	}
	g.Wave()
	return everything(d)
}

func cmpNames(a, b state.Name) int {
	switch x, y := a.Table+a.Key, b.Table+b.Key; {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// everything is what was derived, and what is wrong.
func everything(d *derive.Derived) map[string]resource {
	out := all(d)
	for _, root := range d.Complaints {
		for _, i := range root.Items() {
			out["complaint "+i.Key.String()] = resource{Annotations: map[string]string{"text": fmt.Sprint(i.Value.Text)}}
		}
	}
	return out
}

// edit is a row of one of a few objects, or none.
func edit(random *rand.Rand) (state.Name, *pb.Row) {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	namespace, name := pick("a", "b"), pick("x", "y")
	port := pick("80", "443")
	tables := map[string]string{
		gatewayapi.Gateway: `{"gatewayClassName": "` + pick("istio", "other") +
			`", "allowedListeners": {"namespaces": {"from": "` + pick("All", "Same", "None") + `"}},
			"listeners": [{"name": "one", "port": ` + port + `, "protocol": "` + pick(
			"HTTP", "TCP",
		) + `", "allowedRoutes": {"namespaces": {"from": "` + pick("All", "Same") + `"}}},
			{"name": "two", "port": 443, "protocol": "HTTPS", "hostname": "` + pick(
			"*.example", "a.example",
		) + `", "tls": {"certificateRefs": [{"name": "web", "namespace": "a"}]}}]}`,
		gatewayapi.ListenerSet: `{"parentRef": {"name": "x", "namespace": "a"}, "listeners": [{"name": "one", "port": ` +
			port + `, "protocol": "HTTP", "hostname": "` + pick("s.example", "*.example") + `"}]}`,
		gatewayapi.HTTPRoute: `{"parentRefs": [{"name": "x", "namespace": "a"}, {"kind": "ListenerSet", "name": "` +
			pick("x", "y") + `"}, {"group": "", "kind": "Service", "name": "web"}],
			"hostnames": ["` + pick("a.example", "b.example", "*.example") + `"], "rules": [{"matches": [{"path": {"value": "` + pick("/",
			"/p", "/p/q") + `"}}],
			"backendRefs": [{"name": "web", "namespace": "` + pick("a", "b") + `", "port": 80}]}]}`,
		gatewayapi.TCPRoute: `{"parentRefs": [{"name": "x", "namespace": "a"}], "rules": [{"backendRefs": [{"name": "web", "port": 80}]}]}`,
		gatewayapi.BackendTLSPolicy: `{"targetRefs": [{"group": "", "kind": "Service", "name": "web"}], "validation": ` +
			`{"wellKnownCACertificates": "System", "hostname": "` + pick("m.example", "n.example") + `"}}`,
		secrets.Grants: `{"from": [{"group": "gateway.networking.k8s.io", "kind": "` + pick("HTTPRoute", "Gateway") +
			`", "namespace": "` + pick("a", "b") + `"}], "to": [{"group": "", "kind": "` + pick("Service", "Secret") +
			`"}]}`,
	}
	n := state.Name{Table: pick(append(slices.Sorted(maps.Keys(tables)), state.Services)...), Key: namespace + "/" + name}
	row := &pb.Row{Key: n.Key, Created: int64(random.IntN(3)), Payload: []byte(tables[n.Table]), Source: n.Table + " " + n.Key}
	if n.Table == state.Services {
		host := "web." + namespace + ".svc.cluster.local"
		n.Key = namespace + "/" + host
		row = &pb.Row{Key: n.Key, Payload: (&pb.Service{Namespace: namespace, Host: host, Ports: []*pb.Port{{Number: 80, Name: "http"}}}).AppendTo(nil)}
	}
	if random.IntN(4) == 0 {
		return n, nil
	}
	return n, row
}
