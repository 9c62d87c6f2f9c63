package istiod

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Types of resources.
const (
	prefix        = "type.googleapis.com/"
	clusterType   = prefix + "envoy.config.cluster.v3.Cluster"
	listenerType  = prefix + "envoy.config.listener.v3.Listener"
	routeType     = prefix + "envoy.config.route.v3.RouteConfiguration"
	endpointType  = prefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	extensionType = prefix + "envoy.config.core.v3.TypedExtensionConfig"
	nameType      = prefix + "istio.networking.nds.v1.NameTable"
)

// proxy is a stream of a proxy, and its name: NAME.NAMESPACE.
type proxy struct {
	xds.StreamStatus
	id   istio.NodeID
	name string
}

// proxies are the streams in order of names and connections.
func (s *source) proxies() []proxy {
	var all []proxy
	for _, c := range s.Streamed() {
		p := proxy{StreamStatus: c, name: c.Node}
		if id, ok := istio.ParseNodeID(c.Node); ok {
			p.id, p.name = id, id.Short()
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b proxy) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.Connection, b.Connection))
	})
	return all
}

// field is a string of the node's metadata.
func (p proxy) field(key string) string {
	return p.Client.GetMetadata().GetFields()[key].GetStringValue()
}

// connection names the stream as istiod does.
func (p proxy) connection() string { return fmt.Sprintf("%s-%d", p.name, p.Connection) }

type (
	status struct {
		Cluster      string `json:"cluster_id,omitempty"`
		Proxy        string `json:"proxy,omitempty"`
		Type         string `json:"proxy_type,omitempty"`
		IstioVersion string `json:"istio_version,omitempty"`

		ClusterSent    string `json:"cluster_sent,omitempty"`
		ClusterAcked   string `json:"cluster_acked,omitempty"`
		ListenerSent   string `json:"listener_sent,omitempty"`
		ListenerAcked  string `json:"listener_acked,omitempty"`
		RouteSent      string `json:"route_sent,omitempty"`
		RouteAcked     string `json:"route_acked,omitempty"`
		EndpointSent   string `json:"endpoint_sent,omitempty"`
		EndpointAcked  string `json:"endpoint_acked,omitempty"`
		ExtensionSent  string `json:"extensionconfig_sent,omitempty"`
		ExtensionAcked string `json:"extensionconfig_acked,omitempty"`

		Resources map[string]synced `json:"resources,omitempty"`
	}
	synced struct {
		Sent  string    `json:"sent,omitempty"`
		Acked string    `json:"acked,omitempty"`
		At    time.Time `json:"sentTime"`
		Error string    `json:"lastError,omitempty"`
	}
)

// syncz shows what proxies were sent and acknowledged, by nonces.
func (s *source) syncz(w http.ResponseWriter, r *http.Request) {
	namespace := r.URL.Query().Get("namespace")
	all := []status{}
	for _, p := range s.proxies() {
		if namespace != "" && cmp.Or(p.field("NAMESPACE"), p.id.Namespace) != namespace {
			continue
		}
		v := status{Cluster: p.field("CLUSTER_ID"), Proxy: p.name, Type: p.id.Type, IstioVersion: p.field("ISTIO_VERSION"), Resources: map[string]synced{}}
		for _, t := range p.Types {
			v.Resources[t.Type] = synced{t.Sent, t.Acked, t.SentAt, t.Refused}
		}
		for url, of := range map[string][2]*string{
			clusterType: {&v.ClusterSent, &v.ClusterAcked}, listenerType: {&v.ListenerSent, &v.ListenerAcked}, routeType: {&v.RouteSent, &v.RouteAcked},
			endpointType: {&v.EndpointSent, &v.EndpointAcked}, extensionType: {&v.ExtensionSent, &v.ExtensionAcked},
		} {
			*of[0], *of[1] = v.Resources[url].Sent, v.Resources[url].Acked
		}
		all = append(all, v)
	}
	write(w, all)
}

type (
	client struct {
		Connection string              `json:"connectionId"`
		Connected  time.Time           `json:"connectedAt"`
		Address    string              `json:"address"`
		Labels     map[string]string   `json:"labels,omitempty"`
		Metadata   map[string]any      `json:"metadata,omitempty"`
		Locality   *locality           `json:"locality,omitempty"`
		Watches    map[string][]string `json:"watches,omitempty"`
	}
	locality struct {
		Region  string `json:"region,omitempty"`
		Zone    string `json:"zone,omitempty"`
		SubZone string `json:"sub_zone,omitempty"`
	}
	clients struct {
		Total int      `json:"totalClients"`
		All   []client `json:"clients,omitempty"`
	}
)

// shownMetadata are the keys of a node's metadata that adsz shows.
var shownMetadata = []string{
	"CLUSTER_ID", "GENERATOR", "INSTANCE_IPS", "INTERCEPTION_MODE", "ISTIO_VERSION", "LABELS", "MESH_ID",
	"NAMESPACE", "NETWORK", "NODE_NAME", "OWNER", "SERVICE_ACCOUNT", "WORKLOAD_NAME",
}

func newClient(p proxy) client {
	return client{Connection: p.connection(), Connected: p.Since, Address: p.Remote}
}

// connections shows who is connected.
func (s *source) connections(w http.ResponseWriter, _ *http.Request) {
	var all clients
	for _, p := range s.proxies() {
		all.All = append(all.All, newClient(p))
	}
	all.Total = len(all.All)
	write(w, all)
}

// adsz shows who is connected, what they say of themselves, and the names that they ask for by
// type, none where they ask for all.
func (s *source) adsz(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("push") {
		http.Error(w, "changes are pushed by themselves; there is nothing that pushes all", http.StatusBadRequest)
		return
	}
	want := r.URL.Query().Get("proxyID")
	var all clients
	for _, p := range s.proxies() {
		if want == "" || p.Node == want || p.name == want || p.connection() == want {
			all.All = append(all.All, detailed(p))
		}
	}
	all.Total = len(all.All)
	write(w, all)
}

func detailed(p proxy) client {
	c := newClient(p)
	c.Metadata, c.Watches, c.Labels = map[string]any{}, map[string][]string{}, map[string]string{}
	for _, key := range shownMetadata {
		if v := p.Client.GetMetadata().GetFields()[key]; v != nil {
			c.Metadata[key] = v.AsInterface()
		}
	}
	if l := p.Client.GetLocality(); l != nil {
		c.Locality = &locality{l.Region, l.Zone, l.SubZone}
	}
	for key, v := range p.Client.GetMetadata().GetFields()["LABELS"].GetStructValue().GetFields() {
		if text, ok := v.Kind.(*structpb.Value_StringValue); ok {
			c.Labels[key] = text.StringValue
		}
	}
	for _, t := range p.Types {
		c.Watches[t.Type] = append([]string{}, p.Names[t.Type]...)
	}
	return c
}

// dumped returns the proxy that a request names, and what it is to have. Where ok is false the
// request was answered: it names none, or one that is not connected.
func (s *source) dumped(w http.ResponseWriter, r *http.Request) (node string, types []admin.TypeDump, ok bool) {
	if node = r.URL.Query().Get("proxyID"); node == "" {
		http.Error(w, "say which proxy: ?proxyID=NAME.NAMESPACE (/debug/connections lists those that are connected)", http.StatusBadRequest)
		return "", nil, false
	}
	if types, ok = s.Dump(node); !ok {
		http.Error(w, fmt.Sprintf("proxy %q is not connected (/debug/connections lists those that are)", node), http.StatusNotFound)
	}
	return node, types, ok
}

// resources returns a page that shows the resources of a type that a proxy is to have.
func (s *source) resources(typeURL string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, types, ok := s.dumped(w, r)
		if !ok {
			return
		}
		page := struct {
			Configs []message `json:"configs,omitempty"`
		}{}
		for _, t := range types {
			if t.Type != typeURL || t.Sensitive {
				continue
			}
			for _, b := range t.Bodies {
				page.Configs = append(page.Configs, message{&anypb.Any{TypeUrl: t.Type, Value: b.Value()}})
			}
		}
		write(w, page)
	}
}

// addresses are those that a proxy says it has.
func (p proxy) addresses() []string {
	if all := p.field("INSTANCE_IPS"); all != "" {
		return strings.Split(all, ",")
	}
	return []string{p.id.Address}
}
