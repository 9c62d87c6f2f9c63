package parttest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/internal/archive"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// urls are types that have words. Others are one word as they are, and have resources of plain
// text.
var urls = map[string]string{
	"clusters":  pieces.Cluster,
	"endpoints": "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	"routes":    pieces.RouteConfiguration,
	"secrets":   "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
}

// URL is the type of a word.
func URL(word string) string { return cmp.Or(urls[word], word) }

// Word is what a type is called in conversations.
func Word(url string) string {
	for word, of := range urls {
		if of == url {
			return word
		}
	}
	return url
}

func shorts(urls []string) (all []string) {
	for _, url := range urls {
		all = append(all, Word(url))
	}
	return all
}

// encode makes a resource of a type which says something; broken: it is none that can be read.
func encode(url, name, content string) []byte {
	if content == "broken" {
		return []byte{0xff}
	}
	var m proto.Message
	switch Word(url) {
	case "clusters":
		m = &clusterv3.Cluster{Name: name, AltStatName: content}
	case "endpoints":
		m = &endpointv3.ClusterLoadAssignment{
			ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{Locality: &corev3.Locality{Region: content}}},
		}
	case "secrets":
		inline := &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: content}}
		m = &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: inline}}}
	case "routes":
		m = routes(name, content)
	default:
		return []byte(content)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil
	}
	return b
}

// routes is a route configuration with virtual hosts NAME or NAME:DOMAIN, with commas between them.
func routes(name, hosts string) proto.Message {
	m := &routev3.RouteConfiguration{Name: name}
	for _, h := range strings.Split(hosts, ",") {
		of, domain, _ := strings.Cut(h, ":")
		m.VirtualHosts = append(m.VirtualHosts, &routev3.VirtualHost{Name: of, Domains: []string{of + domain}})
	}
	return m
}

// hosts are the virtual hosts of a route configuration, as routes has them.
func hosts(m *routev3.RouteConfiguration) string {
	var all []string
	for _, h := range m.VirtualHosts {
		text := h.Name
		if domain := strings.TrimPrefix(h.Domains[0], h.Name); domain != "" {
			text += ":" + domain
		}
		all = append(all, text)
	}
	return strings.Join(all, ",")
}

// decode is what a resource of a type says.
func decode(url string, b []byte) string {
	var cluster clusterv3.Cluster
	var endpoints endpointv3.ClusterLoadAssignment
	var secret tlsv3.Secret
	var config routev3.RouteConfiguration
	switch Word(url) {
	case "clusters":
		if proto.Unmarshal(b, &cluster) == nil {
			return cluster.AltStatName
		}
	case "endpoints":
		if proto.Unmarshal(b, &endpoints) == nil && len(endpoints.Endpoints) > 0 {
			return endpoints.Endpoints[0].GetLocality().GetRegion()
		}
	case "routes":
		if proto.Unmarshal(b, &config) == nil {
			return hosts(&config)
		}
	case "secrets":
		if proto.Unmarshal(b, &secret) == nil {
			return secret.GetGenericSecret().GetSecret().GetInlineString()
		}
	}
	return string(b)
}

// Words are resources, NAME=CONTENT.
func Words(url string, bodies []*view.Body) string {
	var all []string
	for _, b := range bodies {
		all = append(all, b.Name()+"="+decode(url, b.Value()))
	}
	return List(all, " ", "nothing")
}

// Connect has a proxy connect, whose node has metadata KEY=VALUE ….
func (w *World) Connect(name string, metadata []string) (*state.Connection, error) {
	node := &corev3.Node{Id: name}
	if len(metadata) > 0 {
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	for _, word := range metadata {
		key, value, _ := strings.Cut(word, "=")
		node.Metadata.Fields[key] = structpb.NewStringValue(value)
	}
	encoded, extensions, err := state.EncodeNode(node)
	if err != nil {
		return nil, err
	}
	peer := xds.Peer{Node: node, RemoteAddress: name + ":1"}
	w.Proxies[name] = w.State.NewConnection(peer, encoded, extensions, func(what xds.Wake) {
		w.woken[name] = map[xds.Wake]string{xds.WakeAll: "all", xds.WakeDependent: "dependent"}[what]
	})
	return w.Proxies[name], nil
}

// Proxy does PROXY connects. Of any other line it returns the connection of the proxy that it
// begins with, nil where there is none, and the URL of the type that its next word names, empty
// without one.
func (w *World) Proxy(name, verb string, words []string) (conn *state.Connection, url string, known bool, err error) {
	if verb == "connects" {
		_, err := w.Connect(name, words)
		return nil, "", true, err
	}
	if len(words) > 0 {
		url = URL(words[0])
	}
	return w.Proxies[name], url, false, nil
}

// Wish is what a proxy asks for: NAME …, all if there are no words, nothing if the word is nothing.
func Wish(words []string) placement.Wish {
	if slices.Equal(words, []string{"nothing"}) {
		return placement.Wish{}
	}
	return placement.Wish{Wildcard: len(words) == 0, Names: words}
}

// Sees is what a connection is shown of what it asks for of a type.
func Sees(conn *state.Connection, url string) string {
	wish, all := conn.Subs[url], conn.Seen[url].Bodies()
	return Words(url, slices.DeleteFunc(slices.Clone(all), func(b *view.Body) bool {
		return !wish.Wildcard && !slices.Contains(wish.Names, b.Name())
	}))
}

func (w *World) proxy(name string, conn *state.Connection, verb, rest string) error {
	switch verb {
	case "speaks":
		identity, ns, _ := strings.Cut(rest, " of ")
		conn.Speaks(state.Caller{Voice: state.Voice{Identity: identity, Namespace: ns, Operator: ns == "system"}})
		return nil
	case "sees":
		url, want, _ := strings.Cut(rest, " ")
		return archive.Expect(Sees(conn, URL(url)), want)
	case "woken":
		was := cmp.Or(w.woken[name], "no")
		delete(w.woken, name)
		return archive.Expect(was, rest)
	case "fails":
		why := conn.Err
		if why == nil {
			return archive.Expect("never", rest)
		}
		return archive.Expect(why.Error(), rest)
	}
	return fmt.Errorf("a proxy does not say %s", verb)
}
