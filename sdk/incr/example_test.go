package incr_test

import (
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// service and endpoint are rows.
type service struct {
	namespace string
	ports     []int
	labels    map[string]string
}

type endpoint struct {
	service, address string
}

// clusterKey is the least that a cluster depends on.
type clusterKey struct {
	service string
	port    int
}

// Clusters are made from services and their endpoints. Only what an edit concerns is computed
// again.
func Example() {
	g := incr.New()

	// Inputs are tables of rows.
	services := incr.NewInput[string, *service](g, "services", nil)
	endpoints := incr.NewInput[string](g, "endpoints", incr.Same[endpoint])

	// A narrow read: an edit of the labels spreads no further than this.
	ports := incr.NewFunc(g, "ports", slices.Equal, func(c *incr.Ctx, name string) ([]int, error) {
		s, ok := services.Get(c, name)
		if !ok {
			return nil, incr.Absent
		}
		return s.ports, nil
	})

	// An index: who reads the endpoints of one service doesn't hear of others.
	byService := incr.NewIndex(endpoints, "endpoints by service", func(_ string, e endpoint) []string {
		return []string{e.service}
	})

	// A collection of cluster keys, and of the clusters themselves.
	keys := incr.FlatMap(incr.Each(services, ports), "cluster keys", incr.Same[string],
		func(c *incr.Ctx, name string, ports []int) ([]incr.Item[clusterKey, string], error) {
			var keys []incr.Item[clusterKey, string]
			for _, p := range ports {
				keys = append(keys, incr.Item[clusterKey, string]{Key: clusterKey{name, p}, Value: name})
			}
			return keys, nil
		})
	clusters := incr.Map(keys, "clusters", incr.Same[string], func(c *incr.Ctx, k clusterKey, _ string) (string, error) {
		text := fmt.Sprintf("%s:%d ->", k.service, k.port)
		for _, e := range byService.Of(c, k.service) {
			text += " " + e.Value.address
		}
		return text, nil
	})

	// A root says what is wanted.
	root := incr.ObserveAll(clusters)
	defer root.Close()

	services.Set("cart", &service{namespace: "shop", ports: []int{80, 443}})
	services.Set("user", &service{namespace: "shop", ports: []int{80}})
	endpoints.Set("cart-1", endpoint{"cart", "10.0.0.1"})
	endpoints.Set("user-1", endpoint{"user", "10.0.0.2"})
	g.Wave()
	for _, cluster := range root.Items() {
		fmt.Println(cluster.Value)
	}

	endpoints.Set("user-2", endpoint{"user", "10.0.0.3"})
	services.Set("cart", &service{namespace: "shop", ports: []int{80, 443}, labels: map[string]string{"team": "a"}})
	g.Wave()
	changed, removed := root.Delta()
	fmt.Println("changed", changed, "removed", removed)

	why, _ := incr.Explain(clusters, clusterKey{"user", 80}, 10)
	fmt.Println("made from", why.Rows)

	// Output:
	// cart:80 -> 10.0.0.1
	// cart:443 -> 10.0.0.1
	// user:80 -> 10.0.0.2
	// changed [{{user 80} user:80 -> 10.0.0.2 10.0.0.3}] removed []
	// made from [{services user} {endpoints user-1} {endpoints user-2}]
}
