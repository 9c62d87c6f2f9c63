package e2e

import (
	"context"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// TestStory changes the configuration in every way that matters to traffic, while clients ask all
// the time.
func TestStory(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) {
			w := newWorld(t, protocol)
			clients := w.traffic(t)
			w.weights(t)
			w.endpoints(t)
			w.service(t)
			w.route(t)
			w.finish(t, clients)
		})
	}
}

// weights: the split is as configured, and follows a change.
func (w *world) weights(t *testing.T) {
	const n = 400
	for _, target := range w.web("/api") {
		got := target.Shares(context.Background(), n)
		if v2 := got["v2-a"]; v2 < n*15/100 || v2 > n*35/100 || got["v1-a"] == 0 || got["v1-b"] == 0 {
			t.Errorf("%s: of %d requests v2 should get a quarter, and both of v1 some; got %v", target, n, got)
		}
	}
	w.Weight1, w.Weight2 = 0, 100
	w.write(t, "routes.yaml")
	for _, target := range w.web("/api") {
		only(t, target, "v2-a")
	}
}

// endpoints: one that is added gets requests, one that is removed gets none.
func (w *world) endpoints(t *testing.T) {
	first := w.V2[0]
	w.V2 = append(w.V2, mesh.NewBackend(t, "v2-b"))
	w.write(t, "web.yaml")
	for _, target := range w.web("/api") {
		only(t, target, "v2-a", "v2-b")
	}
	w.V2 = w.V2[1:]
	w.write(t, "web.yaml")
	for _, target := range w.web("/api") {
		only(t, target, "v2-b")
	}
	first.Stop()
}

// service: one that is added is reachable, at the gateway and in the mesh.
func (w *world) service(t *testing.T) {
	if got := w.shop()[0].Shares(context.Background(), 1); got["404"] != 1 {
		t.Errorf("a service that isn't there: got %v, want 404", got)
	}
	w.Shop = []*mesh.Backend{mesh.NewBackend(t, "shop")}
	w.write(t, "shop.yaml")
	for _, target := range w.shop() {
		only(t, target, "shop")
	}
}

// route: one that is removed leads nowhere.
func (w *world) route(t *testing.T) {
	for _, target := range w.web("/old") {
		only(t, target, "v1-a", "v1-b")
	}
	w.Old = false
	w.write(t, "routes.yaml")
	for _, target := range w.web("/old") {
		only(t, target, "404")
	}
}
