package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"
)

// Proxy is who asks.
type Proxy struct {
	Node *corev3.Node
	// Subscribes has the names that it asks for by type URL, * for all; nil: it is an Envoy, which
	// asks for all clusters and listeners, and for what these name.
	Subscribes map[string][]string
}

// all is the name that means all of a type.
const all = "*"

// ReadProxies reads a file of proxies, in YAML or JSON: `proxies`, a list whose elements have a
// `node`, which is an envoy.config.core.v3.Node, and may say what it `subscribes` to, and which
// list of `extensions` it has, which has their names. Other fields don't count.
func ReadProxies(file string) ([]Proxy, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	proxies, err := ParseProxies(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(proxies) == 0 {
		return nil, fmt.Errorf(
			"%s: there is no proxy in it; it wants `proxies:`, a list of which each has a `node:`, as in a bootstrap (coxswain record proxies writes one)",
			file,
		)
	}
	return proxies, nil
}

// ParseProxies reads the text of such a file, in which there may be none.
func ParseProxies(text []byte) (proxies []Proxy, err error) {
	var list struct {
		Proxies []struct {
			Node       json.RawMessage
			Extensions string
			Subscribes map[string][]string
		}
		Extensions map[string][]string
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	for i, p := range list.Proxies {
		n := &corev3.Node{}
		if err := protojson.Unmarshal(p.Node, n); err != nil {
			return nil, fmt.Errorf("proxies[%d].node is no envoy.config.core.v3.Node: %w", i, err)
		}
		if n.Id == "" {
			return nil, fmt.Errorf("proxies[%d].node has no id", i)
		}
		names, known := list.Extensions[p.Extensions]
		if p.Extensions != "" && !known {
			return nil, fmt.Errorf("proxies[%d].extensions is %q, which `extensions` has not", i, p.Extensions)
		}
		for _, name := range names {
			n.Extensions = append(n.Extensions, &corev3.Extension{Name: name})
		}
		proxies = append(proxies, Proxy{n, p.Subscribes})
	}
	return proxies, nil
}

// wants are the names that a proxy asks for at first.
func (p Proxy) wants() names {
	w := names{}
	if p.Subscribes == nil {
		w.add(clusters, all)
		w.add(listeners, all)
	}
	for typeURL, list := range p.Subscribes {
		for _, name := range list {
			w.add(typeURL, name)
		}
	}
	if len(w[listeners]) > 0 {
		delete(w, extensions) // which listeners name, and which are never said to be gone
	}
	return w
}

// others are the types that it subscribes to and that are not asked for, in order.
func others(proxies []Proxy) []string {
	found := map[string]bool{}
	for _, p := range proxies {
		for typeURL := range p.Subscribes {
			if !slices.Contains(order, typeURL) {
				found[typeURL] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// names that are asked for, by type URL.
type names map[string]map[string]bool

func (n names) add(typeURL, name string) {
	if n[typeURL] == nil {
		n[typeURL] = map[string]bool{}
	}
	n[typeURL][name] = true
}

// order is that in which types are asked for. Clients of gRPC name clusters, by their routes;
// Envoys ask for all.
func (n names) order() []string {
	if len(n[clusters]) > 0 && !n[clusters][all] || len(n[clusters]) == 0 && len(n[listeners]) > 0 && !n[listeners][all] {
		return []string{listeners, routes, clusters, endpoints, extensions}
	}
	return order
}
