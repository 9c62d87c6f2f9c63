package istio

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/casetest"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// pool is what histories are made of: the rows and proxies of all cases.
type pool struct {
	cases  []poolCase
	tables []string
	rows   map[string][]*pb.Row
}

type poolCase struct {
	tables  []*pb.TableRows
	proxies []*sdk.Proxy
}

func newPool(t *testing.T) *pool {
	paths, err := filepath.Glob(filepath.Join(casetest.Dir(t), "*"))
	if err != nil {
		t.Fatal(err)
	}
	read := Plugin().Reads
	p := &pool{rows: map[string][]*pb.Row{}}
	for _, path := range paths {
		c := casetest.Load(t, path)
		var of poolCase
		for _, r := range c.Rows {
			if slices.Contains(read, r.Table) && len(r.Upserts) > 0 {
				of.tables = append(of.tables, &pb.TableRows{Table: r.Table, Upserts: r.Upserts})
				p.rows[r.Table] = append(p.rows[r.Table], r.Upserts...)
			}
		}
		slices.SortFunc(of.tables, func(a, b *pb.TableRows) int { return compareStrings(a.Table, b.Table) })
		for _, x := range c.Proxies {
			node, err := proto.Marshal(x.Node)
			if err != nil {
				t.Fatal(err)
			}
			of.proxies = append(of.proxies, &sdk.Proxy{Node: node})
		}
		p.cases = append(p.cases, of)
	}
	for table, rows := range tokens() {
		p.rows[table] = append(p.rows[table], rows...)
	}
	p.rows[state.ClusterServices] = elsewhere(p.rows[state.Services])
	for i, network := range []string{"net-a", "net-b", "network1", "network2"} {
		e := &pb.Endpoint{Network: network, Cluster: "Kubernetes", Address: fmt.Sprintf("198.51.100.%d", i), Port: 15443}
		p.rows[state.NetworkGateways] = append(p.rows[state.NetworkGateways], &pb.Row{Key: network, Payload: e.AppendTo(nil)})
	}
	for _, namespace := range []string{"default", "prod", "istio-system"} {
		for _, team := range []string{"shop", "other"} {
			p.rows[state.Namespaces] = append(p.rows[state.Namespaces],
				sdk.NamespaceRow(&pb.Namespace{Name: namespace, Labels: map[string]string{"team": team}}))
		}
	}
	p.tables = slices.Sorted(maps.Keys(p.rows))
	for _, rows := range p.rows {
		slices.SortStableFunc(rows, func(a, b *pb.Row) int { return compareStrings(a.Key, b.Key) })
	}
	return p
}

func compareStrings(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func oneOf[V any](r *rand.Rand, list []V) V { return list[r.IntN(len(list))] }

// row is one of a table: a real one, or one with the key of another, or a service or endpoint that
// has changed a little.
func (p *pool) row(r *rand.Rand, table string) *pb.Row {
	row := oneOf(r, p.rows[table])
	if r.IntN(3) > 0 {
		return row
	}
	switch table {
	case state.Services:
		return changedService(r, row)
	case state.Endpoints:
		return changedEndpoint(r, row)
	case state.Mesh:
		return changedMesh(r, row)
	case state.Networks:
		return row
	}
	out := *oneOf(r, p.rows[table])
	out.Key = row.Key
	return &out
}

// elsewhere are what some services are in other clusters.
func elsewhere(services []*pb.Row) []*pb.Row {
	var out []*pb.Row
	for i, row := range services {
		for _, cluster := range []string{"east", "west"}[:i%3] {
			s, err := sdk.ServiceOf(row)
			if err != nil {
				panic(err)
			}
			s.ClusterAddresses = map[string]string{cluster: map[string]string{"east": "10.8.0.1", "west": "10.8.0.2"}[cluster]}
			there := withMeta(sdk.ServiceRow(s), row)
			there.Key += "/" + cluster
			out = append(out, there)
		}
	}
	return out
}

func changedMesh(r *rand.Rand, row *pb.Row) *pb.Row {
	m := &meshv1.MeshConfig{}
	if err := proto.Unmarshal(row.Payload, m); err != nil {
		panic(err)
	}
	settings := oneOf(r, []string{
		`{"proxyListenPort": 16001, "proxyInboundListenPort": 16006, "proxyHttpPort": 15007}`,
		`{"outboundClusterStatName": "%SERVICE%_%SERVICE_PORT_NAME%", "inboundClusterStatName": "%SERVICE_NAME%"}`,
		`{"defaultTrafficPolicy": {"connectionPool": {"tcp": {"maxConnections": 7}}, "outlierDetection": {"consecutive5xxErrors": 3}}}`,
		`{"serviceEntryVisibility": {"applyToSidecars": true, "defaultVisibility": "NAMESPACE"}}`,
		`{"serviceEntryVisibility": {"applyToSidecars": true, "defaultVisibility": "NAMESPACE", "policies": [
			{"matchingRules": [{"namespaceSelector": {"matchLabels": {"team": "shop"}}}], "visibility": "PUBLIC"}]}}`,
		`{"serviceSettings": [{"settings": {"clusterLocal": true}, "hosts": ["*.default.svc.cluster.local"]}]}`,
		`{"defaultConfig": {"connectionSettings": {"profile": "EDGE", "httpRequestTimeout": "0.5s"}}}`,
	})
	change := &meshv1.MeshConfig{}
	if err := protojson.Unmarshal([]byte(settings), change); err != nil {
		panic(err)
	}
	proto.Merge(m, change)
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	out := *row
	out.Payload = b
	return &out
}

func changedService(r *rand.Rand, row *pb.Row) *pb.Row {
	s, err := sdk.ServiceOf(row)
	if err != nil {
		panic(err)
	}
	switch r.IntN(5) {
	case 0:
		s.Addresses = nil
	case 1:
		s.Ports = s.Ports[:min(1, len(s.Ports))]
	case 2:
		s.ExportTo = []string{oneOf(r, []string{".", "*", "~", "prod"})}
	case 3:
		s.External = !s.External
	case 4:
		s.Resolution = oneOf(r, []pb.ServiceResolution{pb.ServiceResolutionStatic, pb.ServiceResolutionNone, pb.ServiceResolutionDns})
	}
	return withMeta(sdk.ServiceRow(s), row)
}

func changedEndpoint(r *rand.Rand, row *pb.Row) *pb.Row {
	e, err := sdk.EndpointOf(row)
	if err != nil {
		panic(err)
	}
	switch r.IntN(5) {
	case 0:
		e.Address = oneOf(r, []string{"10.9.9.1", "10.9.9.2", "2001:db8::1"})
	case 1:
		e.Labels = map[string]string{"app": "other", "version": oneOf(r, []string{"v1", "v2"})}
	case 2:
		e.TlsMode = oneOf(r, []string{"", "istio"})
	case 3:
		e.Weight = uint32(r.IntN(3))
	case 4:
		e.Network = oneOf(r, []string{"", "net-a", "net-b"})
	}
	return withMeta(sdk.EndpointRow(e), row)
}

// withMeta is a row under the key and with the age of another.
func withMeta(row, of *pb.Row) *pb.Row {
	row.Key, row.Created, row.Source = of.Key, of.Created, of.Source
	return row
}
