package istio

import (
	"context"
	"fmt"
	"maps"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/serving"
)

// TestWhoIsBackIsPlacedAsBefore: a proxy that comes back while its views are there is placed where
// it was, without being read again; where rows changed meanwhile, where these say.
func TestWhoIsBackIsPlacedAsBefore(t *testing.T) {
	f := newFleet(t, meshSize{services: 3, endpoints: 1, namespaces: 2})
	f.connect(0)
	before, nodes := maps.Clone(f.told.placed[1]), f.e.Kept().Nodes
	f.e.Detach(1)
	delete(f.told.placed, 1)
	for range 3 {
		f.change()
	}
	if got := f.e.Kept().Nodes; got != nodes {
		t.Errorf("the graph had %d nodes, and has %d", nodes, got)
	}
	f.connect(0)
	if got := f.told.placed[1]; !maps.Equal(got, before) {
		t.Errorf("it was in the views %v, and is in %v", before, got)
	}

	f.e.Detach(1)
	delete(f.told.placed, 1)
	f.change(rows(config.Sidecars, spec(t, f.size.namespace(0)+"/s", &networking.Sidecar{}, "egress: [{hosts: [./*]}]")))
	if len(f.told.placed[1]) > 0 {
		t.Errorf("who has gone was placed into %v", f.told.placed[1])
	}
	f.connect(0)
	fresh := newFleet(t, f.size)
	fresh.change(rows(config.Sidecars, spec(t, f.size.namespace(0)+"/s", &networking.Sidecar{}, "egress: [{hosts: [./*]}]")))
	fresh.connect(0)
	for _, typeURL := range []string{encode.ClusterType, encode.RouteType} {
		if f.told.placed[1][typeURL] == before[typeURL] {
			t.Errorf("%s: the Sidecar changes nothing", typeURL)
		}
		now, want := f.told.views[f.told.placed[1][typeURL]], fresh.told.views[fresh.told.placed[1][typeURL]]
		if now == nil || now.label != want.label || !maps.Equal(now.facts, want.facts) {
			t.Errorf("%s: it is in the view %v, a new one would be in %v", typeURL, now, want)
		}
	}
}

// TestRetainedGo: with their views, and the oldest where there are too many.
func TestRetainedGo(t *testing.T) {
	f := newFleet(t, meshSize{services: 3, endpoints: 1, namespaces: 2})
	rowsOnly := f.e.Kept().Nodes
	f.connect(0) // it stays, and with it the views
	for i := range 2 * serving.MostRetained {
		p := proxy(fmt.Sprintf("sidecar~10.9.%d.%d~load-%d.ns-00~ns-00.svc.cluster.local", i/250, i%250, i), nil, nil)
		p.Connection, p.Types = uint64(10+i), []string{encode.ClusterType}
		if err := f.e.Attach(context.Background(), p, f.told); err != nil {
			t.Fatal(err)
		}
		f.e.Detach(p.Connection)
	}
	if k := f.e.Kept(); k.Retained != serving.MostRetained || k.ByKey != serving.MostRetained {
		t.Errorf("%d are retained, %d can be found", k.Retained, k.ByKey)
	}
	f.leave(0)
	if k := f.e.Kept(); k.Retained+k.ByKey != 0 {
		t.Errorf("%d are retained without views, %d can be found", k.Retained, k.ByKey)
	}
	f.e.Rest(context.Background(), f.told)
	if got := f.e.Kept().Nodes; got != rowsOnly {
		t.Errorf("%d nodes are left, there were %d before anybody came", got, rowsOnly)
	}
}
