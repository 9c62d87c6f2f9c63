package dns

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// edits are random changes of all that names are made of.
func edits(random *rand.Rand) (table string, r *sdk.Row, gone string) {
	n := random.IntN(12)
	namespace := fmt.Sprintf("n%d", random.IntN(3))
	host := fmt.Sprintf("s%d.%s.svc.cluster.local", n, namespace)
	key := namespace + "/" + host
	switch random.IntN(7) {
	case 0, 1:
		s := &pb.Service{
			Host: host, Name: fmt.Sprintf("s%d", n), Namespace: namespace, Registry: "Kubernetes",
			Ports:     []*pb.Port{{Number: 80, Name: "http"}},
			Addresses: []string{fmt.Sprintf("10.0.%d.%d", n, random.IntN(3))},
		}
		switch random.IntN(5) {
		case 0:
			s.Headless, s.Addresses = true, nil
		case 1:
			s.Registry, s.Aliases, s.Host = "External", []string{"alias.example"}, fmt.Sprintf("shared%d.example", n%3)
			key = namespace + "/" + s.Host
		case 2:
			s.ExportTo = []string{"."}
		}
		return state.Services, service(s), key
	case 2:
		return state.ClusterServices,
			row(key+"/far", &pb.Service{Host: host, Namespace: namespace, Addresses: []string{fmt.Sprintf("10.7.0.%d", n)}}),
			key + "/far"
	case 3:
		at := fmt.Sprintf("e%d", random.IntN(30))
		return state.Endpoints, row(at, &pb.Endpoint{
			Host: host, Namespace: namespace, PortName: "http", Address: fmt.Sprintf("10.1.0.%d", random.IntN(20)),
			Hostname: at, Subdomain: "sub",
		}), at
	case 4:
		w := &pb.Workload{Name: fmt.Sprintf("w%d", n), Namespace: namespace, Addresses: []string{fmt.Sprintf("10.2.0.%d", random.IntN(6)), "127.0.0.1"}}
		if random.IntN(2) == 0 {
			w.Node = "node"
		}
		return state.Workloads, row(namespace+"/"+w.Name, w), namespace + "/" + w.Name
	case 5:
		mesh, _ := proto.Marshal(&meshv1.MeshConfig{DefaultServiceExportTo: [][]string{{"*"}, {"."}, nil}[random.IntN(3)]})
		return state.Mesh, &sdk.Row{Key: state.Mesh, Payload: mesh}, state.Mesh
	}
	return state.Namespaces, sdk.NamespaceRow(&pb.Namespace{Name: namespace, Labels: map[string]string{"a": fmt.Sprint(random.IntN(2))}}), namespace
}

// TestAsFromScratch: whatever changes, names are those that a start anew would find.
func TestAsFromScratch(t *testing.T) {
	c, err := parse([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		source, b := &state.Builder{}, &builder{config: &c}
		m := &pb.State{Whole: true, Revision: &pb.Revision{Epoch: 1, Number: 1}}
		for step := range uint64(60) {
			change, err := source.Apply(m)
			if err != nil {
				t.Fatal(err)
			}
			got, want := b.build(change.State), (&builder{config: &c}).build(change.State)
			if !reflect.DeepEqual(got.known, want.known) || !reflect.DeepEqual(got.short, want.short) || !reflect.DeepEqual(got.namespaces, want.namespaces) {
				t.Fatalf("seed %d, step %d:\n%v\n%v\n%v\nfrom scratch\n%v\n%v\n%v", seed, step, got.known, got.short,
					got.namespaces, want.known, want.short, want.namespaces)
			}
			m = &pb.State{Revision: &pb.Revision{Epoch: 1, Number: step + 2}}
			for range 1 + random.IntN(4) {
				table, r, gone := edits(random)
				rows := &pb.TableRows{Table: table}
				if random.IntN(4) == 0 {
					rows.Deletes = []string{gone}
				} else {
					rows.Upserts = []*sdk.Row{r}
				}
				m.Tables = append(m.Tables, rows)
			}
		}
		if len(b.names.known) == 0 || len(b.names.namespaces) == 0 {
			t.Fatal("there are no names")
		}
	}
}

// BenchmarkChange is one service of 20,000 that changes.
func BenchmarkChange(b *testing.B) {
	c, err := parse([]byte(`{}`))
	if err != nil {
		b.Fatal(err)
	}
	source, of := &state.Builder{}, &builder{config: &c}
	at := func(i, n int) *sdk.Row {
		return service(inCluster(fmt.Sprintf("s%d", i), "shop", fmt.Sprintf("10.%d.%d.%d", n%200, i/250, i%250)))
	}
	rows := &pb.TableRows{Table: state.Services}
	for i := range 20_000 {
		rows.Upserts = append(rows.Upserts, at(i, 0))
	}
	change, err := source.Apply(&pb.State{Whole: true, Revision: &pb.Revision{Epoch: 1, Number: 1}, Tables: []*pb.TableRows{rows}})
	if err != nil {
		b.Fatal(err)
	}
	of.build(change.State)
	for n := 0; b.Loop(); n++ {
		change, err := source.Apply(&pb.State{
			Revision: &pb.Revision{Epoch: 1, Number: uint64(n) + 2},
			Tables:   []*pb.TableRows{{Table: state.Services, Upserts: []*sdk.Row{at(n%20_000, n+1)}}},
		})
		if err != nil {
			b.Fatal(err)
		}
		of.build(change.State)
	}
}
