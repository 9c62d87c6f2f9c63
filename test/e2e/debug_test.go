package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Types of Istio's tools: https://istio.io/latest/docs/ops/diagnostic-tools/proxy-cmd/ asks for
// them by xDS.
const (
	debugType = "istio.io/debug"
	synczType = "istio.io/debug/syncz"
	dumpType  = "istio.io/debug/config_dump"
)

// watchClusters keeps a proxy's stream open that has acknowledged its clusters.
func (g *guarded) watchClusters(token, namespace string) {
	g.t.Helper()
	r := g.read(token, "")
	r.node.Id = "sidecar~10.0.0.1~a." + namespace + "~" + namespace + ".svc.cluster.local"
	if err := r.ask(clusters); err != nil {
		g.t.Fatal(err)
	}
	if _, err := r.next(clusters); err != nil {
		g.t.Fatal(err)
	}
}

// debug asks once for a debug type.
func (g *guarded) debug(token, typeURL string, names ...string) (*discovery.DiscoveryResponse, error) {
	r := g.read(token, "event")
	if err := r.ask(typeURL, names...); err != nil {
		return nil, err
	}
	return r.next(typeURL)
}

// states are what syncz says of clusters, by node.
func (g *guarded) states(token string) (map[string]statusv3.ConfigStatus, error) {
	m, err := g.debug(token, synczType)
	if err != nil {
		return nil, err
	}
	found := map[string]statusv3.ConfigStatus{}
	for _, a := range m.Resources {
		c := &statusv3.ClientConfig{}
		if err := a.UnmarshalTo(c); err != nil {
			return nil, err
		}
		for _, x := range c.GenericXdsConfigs {
			if x.TypeUrl == clusters {
				found[c.Node.Id] = x.ConfigStatus
			}
		}
	}
	return found, nil
}

func TestDebugTypes(t *testing.T) {
	g := guardWith(t, apiSet, map[string]string{"config/all.yaml": apiObjects, "mesh.yaml": ""}, "--authPlaintext", "--namespace", "ops")
	g.watchClusters(webToken, "shop")
	g.watchClusters(operatorToken, "ops")
	const shop, ops = "sidecar~10.0.0.1~a.shop~shop.svc.cluster.local", "sidecar~10.0.0.1~a.ops~ops.svc.cluster.local"

	wait.For(t, "the operator sees that both proxies are synced", func() error {
		states, err := g.states(operatorToken)
		if err == nil && !maps.Equal(states, map[string]statusv3.ConfigStatus{"a.shop": statusv3.ConfigStatus_SYNCED, "a.ops": statusv3.ConfigStatus_SYNCED}) {
			t.Logf("states %v", states)
			err = status.Error(codes.Unknown, "not yet")
		}
		return err
	})
	if states, err := g.states(webToken); err != nil || !slices.Equal(slices.Collect(maps.Keys(states)), []string{"a.shop"}) {
		t.Errorf("a workload sees %v, %v", states, err)
	}

	if m, err := g.debug(webToken, debugType, "edsz?proxyID=a.shop"); err != nil || len(m.Resources) != 1 {
		t.Errorf("edsz of its own proxy: %v, %v", m, err)
	}
	m, err := g.debug(webToken, dumpType, shop)
	if err != nil || len(m.Resources) != 1 {
		t.Fatal(err, m)
	}
	dump := &adminv3.ClustersConfigDump{}
	if err := m.Resources[0].UnmarshalTo(dump); err != nil || len(dump.DynamicActiveClusters) == 0 ||
		dump.DynamicActiveClusters[0].Cluster.GetTypeUrl() != clusters {
		t.Error(err, dump)
	}
	for _, page := range []string{"configs", "list", "syncz", "config_dump?proxyID=" + shop, "config_dump?proxyID=a.shop"} {
		m, err := g.debug(operatorToken, debugType, page)
		if err != nil || len(m.Resources) != 1 || m.Resources[0].TypeUrl != debugType || !json.Valid(m.Resources[0].Value) {
			t.Errorf("%s: %v, %v", page, err, m)
		}
	}

	for _, c := range []struct {
		token, typeURL string
		names          []string
		code           codes.Code
		words          string
	}{
		{webToken, debugType, []string{"configs"}, codes.PermissionDenied, "namespace ops"},
		{webToken, debugType, []string{"config_dump?proxyID=" + ops}, codes.NotFound, "may see"},
		{webToken, debugType, []string{"edsz?proxyID=a.ops"}, codes.NotFound, "may see"},
		{webToken, debugType, []string{"syncz"}, codes.PermissionDenied, "namespace ops"},
		{operatorToken, debugType, []string{"pushcontext"}, codes.NotFound, "/debug/authorizationz"},
		{webToken, dumpType, []string{ops}, codes.NotFound, "may see"},
		{operatorToken, dumpType, nil, codes.InvalidArgument, "one name"},
		{operatorToken, debugType, []string{"a", "b"}, codes.InvalidArgument, "one name"},
		{operatorToken, debugType, []string{"pprof/heap"}, codes.NotFound, "pprof/heap"},
		{operatorToken, debugType, []string{"config_dump"}, codes.InvalidArgument, "proxyID"},
	} {
		m, err := g.debug(c.token, c.typeURL, c.names...)
		if status.Code(err) != c.code || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s %v: %v, %v; want %v with %q", c.typeURL, c.names, m, err, c.code, c.words)
		}
	}
	if _, err := g.debug(operatorToken, synczType); err != nil {
		t.Errorf("after all this: %v", err)
	}
}

// A stream asks again and again; what acknowledges an answer is no question. In plain text nobody
// has an identity, and nobody is answered.
func TestDebugTypesAgain(t *testing.T) {
	g := guardWith(t, apiSet, map[string]string{"config/all.yaml": apiObjects, "mesh.yaml": ""}, "--authPlaintext", "--namespace", "ops")
	r := g.read(operatorToken, "event")
	for _, page := range []string{"configs", "tables"} {
		for range 2 { // without a nonce it is a question, though the same
			if err := r.ask(debugType, page); err != nil {
				t.Fatal(err)
			}
			m, err := r.Recv()
			if err != nil || len(m.Resources) != 1 {
				t.Fatal(page, err, m)
			}
			ack := &discovery.DiscoveryRequest{TypeUrl: debugType, VersionInfo: m.VersionInfo, ResponseNonce: m.Nonce, ResourceNames: []string{page}}
			if err := r.Send(ack); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.ask(clusters); err != nil { // what comes next is this answer: acknowledging has none
		t.Fatal(err)
	}
	if m, err := r.Recv(); status.Code(err) != codes.InvalidArgument && (err != nil || m.TypeUrl != clusters) {
		t.Errorf("%v, %v", m, err)
	}

	first := g.read(operatorToken, "event") // as istioctl asks: the first request has a nonce of its own
	if err := first.Send(&discovery.DiscoveryRequest{Node: first.node, TypeUrl: synczType, ResponseNonce: "2026-11-22 10:00:00.000000001"}); err != nil {
		t.Fatal(err)
	}
	if m, err := first.Recv(); err != nil || m.TypeUrl != synczType {
		t.Errorf("a first question with a nonce: %v, %v", err, m)
	}

	open := guardWith(t, apiSet, map[string]string{"config/all.yaml": apiObjects, "mesh.yaml": ""})
	if m, err := open.debug("", synczType); status.Code(err) != codes.Unauthenticated {
		t.Errorf("nobody: %v, %v", m, err)
	}
}
