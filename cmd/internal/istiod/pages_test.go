package istiod

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	api "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
)

// core has one proxy, one service, one policy.
type core struct {
	admin.Source
	rows map[string][]*pb.Row
}

const nodeID = "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local"

func (k core) Rows(table string) []*pb.Row { return k.rows[table] }

func (core) SecretTable(name string) bool { return name == "networking.istio.io/Gateway" }

func (core) Plugins() []admin.Plugin {
	return []admin.Plugin{
		{Name: "files", Plugin: "config/file", State: "serving"}, {Name: "kubernetes", Plugin: "registry/kubernetes", State: "serving"},
		{Name: "remote@east", Plugin: "registry/kubernetes", State: "syncing"}, {Name: "remote@file", Plugin: "registry/kubernetes", State: "serving"},
	}
}

func (k core) Tables() (all []admin.Table) {
	for name := range k.rows {
		all = append(all, admin.Table{Name: name})
	}
	return all
}

func (core) Streamed() []xds.StreamStatus {
	labels, _ := structpb.NewStruct(map[string]any{
		"CLUSTER_ID": "east", "NAMESPACE": "shop", "ISTIO_VERSION": "1.31.0", "LABELS": map[string]any{"app": "web"},
		"HOME": "/x",
	})
	return []xds.StreamStatus{
		{Connection: 7, Node: nodeID, Client: &corev3.Node{
			Id: nodeID, Metadata: labels,
		}, Remote: "10.0.0.1:4000", Since: time.Unix(9, 0).UTC(), Types: []xds.TypeStatus{
			{Type: clusterType, Sent: "n2", Acked: "n1", SentAt: time.Unix(10, 0).UTC(), Refused: "no such filter"}, {Type: routeType, Sent: "r", Acked: "r"},
		}, Names: map[string][]string{routeType: {"80"}}},
		{Connection: 8, Node: "strange", Client: &corev3.Node{Id: "strange"}},
	}
}

func (core) Dump(node string) ([]admin.TypeDump, bool) {
	value, _ := proto.Marshal(&endpointv3.ClusterLoadAssignment{ClusterName: "c"})
	by, _ := structpb.NewStruct(map[string]any{"config": "/apis/networking.istio.io/v1/namespaces/shop/destination-rule/web"})
	made := &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": by}}
	cluster, _ := proto.Marshal(&clusterv3.Cluster{Name: "outbound|80||web.shop.svc.cluster.local", Metadata: made})
	return []admin.TypeDump{
		{Type: clusterType, Bodies: []*view.Body{view.NewBody(clusterType, "web", cluster, 0), view.NewBody(clusterType, "broken", []byte{255}, 0)}},
		{Type: endpointType, Bodies: []*view.Body{view.NewBody(endpointType, "c", value, 0)}},
		{Type: nameType, Bodies: []*view.Body{view.NewBody(nameType, "", []byte("\n\x0a\n\x01h\x12\x05\n\x03::1"), 0)}},
		{Type: extensionType, Sensitive: true, Bodies: []*view.Body{view.NewBody(extensionType, "hush", []byte("hush"), 0)}},
	}, node == nodeID
}

func (core) Proxy(node string) (admin.Proxy, bool) {
	return admin.Proxy{Types: []report.ProxyType{{Type: clusterType, Names: []report.NamedState{{Name: "broken"}, {Name: "web"}}}}}, node == nodeID
}

func (core) Explain(_ context.Context, _, _, name string) (admin.Explanation, error) {
	if name == "broken" {
		return admin.Explanation{}, errors.New("it has changed meanwhile")
	}
	return admin.Explanation{Rows: []admin.Origin{{RowName: admin.RowName{Table: sidecars, Key: "shop/narrow"}}}}, nil
}

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newCore(t *testing.T) core {
	t.Helper()
	s := &pb.Service{
		Host: "web.shop.svc.cluster.local", Namespace: "shop", Name: "web", Registry: "Kubernetes",
		Addresses: []string{"10.96.0.7"}, Ports: []*pb.Port{{Number: 80, Name: "http", Protocol: "HTTP"}},
		Resolution: pb.ServiceResolutionNone, ExportTo: []string{"*"}, ExternalAddresses: map[string]string{"Kubernetes": "192.0.2.1,192.0.2.2"},
	}
	e := &pb.Endpoint{
		Host: s.Host, Namespace: "shop", PortName: "http", ServicePort: 80, Address: "10.0.0.1", Port: 8080,
		Cluster: "Kubernetes", Locality: "eu/eu-1", ServiceAccount: "web",
		Health: pb.EndpointHealthReady, Node: "one", Labels: map[string]string{"app": "web"},
	}
	return core{rows: map[string][]*pb.Row{
		clusterTable: {
			{Key: "none", Payload: []byte(`{"id":"none","from":"istio-system/none/key"}`)},
			{Key: "east", Payload: []byte(`{"id":"east","from":"istio-system/east/key"}`)},
			{Key: "file", Payload: []byte(`{"id":"file","from":"file:file"}`)},
		},
		state.Services: {
			{Key: "shop/" + s.Host, Created: int64(5 * time.Second), Payload: s.AppendTo(nil)},
			{Key: "shop/broken", Payload: []byte{255}},
		},
		state.Endpoints: {{Key: "shop/" + s.Host + "/http/10.0.0.1:8080", Payload: e.AppendTo(nil)}, {Key: "broken", Payload: []byte{255}}},
		state.Mesh:      {{Key: state.Mesh, Payload: encoded(t, &api.MeshConfig{RootNamespace: "ops", TrustDomain: "corp.example"})}},
		authorizations: {{
			Key: "shop/allow", Created: int64(5 * time.Second), Labels: map[string]string{"a": "b"},
			Payload: encoded(t, &security.AuthorizationPolicy{Action: security.AuthorizationPolicy_DENY}),
		}},
		"networking.istio.io/Gateway": {{Key: "shop/secret", Payload: nil}},
		sidecars: {{Key: "shop/narrow", Payload: encoded(t,
			&networking.Sidecar{OutboundTrafficPolicy: &networking.OutboundTrafficPolicy{Mode: networking.OutboundTrafficPolicy_REGISTRY_ONLY}})}},
		state.Networks: {{Key: state.Networks, Payload: encoded(t, &api.MeshNetworks{Networks: map[string]*api.Network{"n": {
			Gateways: []*api.Network_IstioNetworkGateway{{Gw: &api.Network_IstioNetworkGateway_Address{Address: "192.0.2.9"}, Port: 15443}}}}})}},
	}}
}

// TestPages: each page in istiod's JSON. That a real istiod's is the same, test/identity/beside
// shows.
func TestPages(t *testing.T) {
	const service = `{"Attributes":{"ServiceRegistry":"Kubernetes","Name":"web","Namespace":"shop","Labels":null,` +
		`"ExportTo":{"*":{}},"LabelSelectors":null,"Aliases":null,` +
		`"ClusterExternalAddresses":{"Addresses":{"Kubernetes":["192.0.2.1","192.0.2.2"]}},"ClusterExternalPorts":null,` +
		`"NodeLocal":false,"TrafficDistribution":0,` +
		`"PublishNotReadyAddresses":false},"ports":[{"name":"http","port":80,"protocol":"HTTP"}],` +
		`"creationTime":"1970-01-01T00:00:05Z","hostname":"web.shop.svc.cluster.local",` +
		`"clusterVIPs":{"Addresses":{"Kubernetes":["10.96.0.7"]}},"defaultAddress":"10.96.0.7","Resolution":2,"MeshExternal":false,"ResourceVersion":""}`
	const shards = `{"web.shop.svc.cluster.local":{"shop":{"Shards":{"Kubernetes/Kubernetes":[{"Labels":{"app":"web",` +
		`"kubernetes.io/hostname":"one","topology.istio.io/cluster":"Kubernetes",` +
		`"topology.kubernetes.io/region":"eu","topology.kubernetes.io/zone":"eu-1"},"Addresses":["10.0.0.1"],` +
		`"ServicePortName":"http","ServiceAccount":"spiffe://corp.example/ns/shop/sa/web",` +
		`"Network":"","Locality":{"Label":"eu/eu-1/","ClusterID":"Kubernetes"},"EndpointPort":8080,"LbWeight":0,` +
		`"TLSMode":"disabled","Namespace":"shop","WorkloadName":"","HostName":"",` +
		`"SubDomain":"","HealthStatus":1,"NodeName":"one"}]},"ServiceAccounts":{"spiffe://corp.example/ns/shop/sa/web":{}}}}}`
	const policies = `{"shop":[{"name":"allow","namespace":"shop","spec":{"action":"DENY"}}]}`
	want := map[string]string{
		"syncz?namespace=shop": `[{"cluster_id":"east","proxy":"web-1.shop","proxy_type":"sidecar",` +
			`"istio_version":"1.31.0","cluster_sent":"n2","cluster_acked":"n1","route_sent":"r","route_acked":"r",` +
			`"resources":{"type.googleapis.com/envoy.config.cluster.v3.Cluster":{"sent":"n2","acked":"n1",` +
			`"sentTime":"1970-01-01T00:00:10Z","lastError":"no such filter"},` +
			`"type.googleapis.com/envoy.config.route.v3.RouteConfiguration":{"sent":"r","acked":"r","sentTime":"0001-01-01T00:00:00Z"}}}]`,
		"syncz?namespace=bank": `[]`,
		"connections": `{"totalClients":2,"clients":[{"connectionId":"strange-8","connectedAt":"0001-01-01T00:00:00Z","address":""},` +
			`{"connectionId":"web-1.shop-7","connectedAt":"1970-01-01T00:00:09Z","address":"10.0.0.1:4000"}]}`,
		"adsz?proxyID=web-1.shop": `{"totalClients":1,"clients":[{"connectionId":"web-1.shop-7",` +
			`"connectedAt":"1970-01-01T00:00:09Z","address":"10.0.0.1:4000","labels":{"app":"web"},` +
			`"metadata":{"CLUSTER_ID":"east","ISTIO_VERSION":"1.31.0","LABELS":{"app":"web"},"NAMESPACE":"shop"},` +
			`"watches":{"type.googleapis.com/envoy.config.cluster.v3.Cluster":[],` +
			`"type.googleapis.com/envoy.config.route.v3.RouteConfiguration":["80"]}}]}`,
		"adsz?proxyID=none":       `{"totalClients":0}`,
		"edsz?proxyID=" + nodeID:  `{"configs":[{"@type":"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment","clusterName":"c"}]}`,
		"ndsz?proxyID=" + nodeID:  `{"configs":[{"@type":"type.googleapis.com/istio.networking.nds.v1.NameTable","table":{"h":{"ips":["::1"]}}}]}`,
		"ecdsz?proxyID=" + nodeID: `{}`,
		"registryz":               "[" + service + "]",
		"endpointShardz":          shards,
		"endpointz":               shards,
		"instancesz":              `{"web-1.shop":[{"Service":` + service + `,"Port":{"name":"http","port":80,"protocol":"HTTP","TargetPort":8080}}]}`,
		"configz": `[{"kind":"AuthorizationPolicy","apiVersion":"security.istio.io/v1","metadata":{"name":"allow",` +
			`"namespace":"shop","creationTimestamp":"1970-01-01T00:00:05Z",` +
			`"labels":{"a":"b"}},"spec":{"action":"DENY"}},{"kind":"Sidecar","apiVersion":"networking.istio.io/v1",` +
			`"metadata":{"name":"narrow","namespace":"shop"},` +
			`"spec":{"outboundTrafficPolicy":{}}}]`,
		"resourcesz": `[{"group":"security.istio.io","version":"v1","kind":"AuthorizationPolicy"},` +
			`{"group":"networking.istio.io","version":"v1","kind":"Gateway"},` +
			`{"group":"networking.istio.io","version":"v1","kind":"Sidecar"}]`,
		"authorizationz": `{"authorization_policies":{"namespace_to_policies":` + policies + `,"root_namespace":"ops"}}`,
		"telemetryz":     `{"telemetries":{"namespace_to_telemetries":{},"root_namespace":"ops"}}`,
		"mesh":           `{"trustDomain":"corp.example","rootNamespace":"ops"}`,
		"push_status":    `{}`,
		"sidecarz?proxyID=" + nodeID: `{"destinationRules":{"web.shop.svc.cluster.local":[{"namespace":"shop","name":"web"}]},"egressListenerServices":[[` +
			service + `]],"name":"narrow",` +
			`"namespace":"shop","outboundTrafficPolicy":{},"services":[` + service +
			`],"servicesByHostname":{"web.shop.svc.cluster.local":` + service +
			`},"sidecar":{"outboundTrafficPolicy":{}},"version":""}`,
		"clusterz": `[{"id":"Kubernetes","secretName":"","syncStatus":"synced"},{"id":"east","secretName":"istio-system/east","syncStatus":"syncing"},` +
			`{"id":"file","secretName":"file:file","syncStatus":"synced"},{"id":"none","secretName":"istio-system/none","syncStatus":"syncing"}]`,
		"networkz": `[{"Network":"n","Addr":"192.0.2.9","Port":15443,"Cluster":"","HBONEPort":0,"ServiceAccount":{"Namespace":"","Name":""}}]`,
	}
	all := All(newCore(t), "istio-system", "Kubernetes")
	asked := map[string]bool{}
	for ask, text := range want {
		name, _, _ := strings.Cut(ask, "?")
		i := slices.IndexFunc(all, func(p admin.Page) bool { return p.Path == "/debug/"+name })
		if i < 0 {
			t.Errorf("there is no page %s", name)
			continue
		}
		asked[all[i].Path] = true
		w := httptest.NewRecorder()
		if all[i].Serve(w, httptest.NewRequest("GET", "/debug/"+ask, nil)); w.Code != 200 || strings.TrimSpace(w.Body.String()) != text {
			t.Errorf("%s: %d\n got %s\nwant %s", ask, w.Code, w.Body, text)
		}
	}
	for _, p := range all {
		w := httptest.NewRecorder()
		switch p.Serve(w, httptest.NewRequest("GET", p.Path, nil)); {
		case p.About == "" && (w.Code != 404 || !strings.Contains(w.Body.String(), "Coxswain has no page")):
			t.Errorf("%s: %d %s", p.Path, w.Code, w.Body)
		case p.About != "" && !asked[p.Path]:
			t.Errorf("no row asks for %s", p.Path)
		}
	}
}

// TestRefusals: what can't be asked is refused, and says how to ask.
func TestRefusals(t *testing.T) {
	all := All(core{}, "istio-system", "Kubernetes")
	for ask, want := range map[string]struct {
		code int
		text string
	}{
		"edsz": {400, "proxyID"}, "sidecarz": {400, "proxyID"}, "sidecarz?proxyID=none": {404, "/debug/connections"},
		"ndsz?proxyID=none": {404, "/debug/connections"}, "adsz?push=true": {400, "by themselves"},
		"mesh": {404, "config/mesh"},
	} {
		name, _, _ := strings.Cut(ask, "?")
		i := slices.IndexFunc(all, func(p admin.Page) bool { return p.Path == "/debug/"+name })
		w := httptest.NewRecorder()
		if all[i].Serve(w, httptest.NewRequest("GET", "/debug/"+ask, nil)); w.Code != want.code || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s: %d %s", ask, w.Code, w.Body)
		}
	}
}

// TestIdentifier: it is JSON in which Istio's tools find what they show.
func TestIdentifier(t *testing.T) {
	var got struct {
		Component, ID string
		Info          struct{ Version string }
	}
	if err := json.Unmarshal([]byte(Identifier(`a"b`, "1.2")), &got); err != nil || got.Component != "coxswain" ||
		got.ID != `a"b` || got.Info.Version != "1.2" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPushStatus: a port that nobody answers at, and an endpoint that is not ready.
func TestPushStatus(t *testing.T) {
	k := newCore(t)
	s := &pb.Service{Host: "web.shop", Namespace: "shop", Ports: []*pb.Port{{Number: 80, Name: "http"}, {Number: 81, Name: "admin"}}}
	free := &pb.Service{Host: "free.shop", Namespace: "shop", Ports: []*pb.Port{{Number: 80, Name: "http"}}, Resolution: pb.ServiceResolutionNone}
	up := &pb.Endpoint{Host: "web.shop", Namespace: "shop", PortName: "http", Address: "10.0.0.1", Health: pb.EndpointHealthReady}
	down := &pb.Endpoint{Host: "web.shop", Namespace: "shop", PortName: "admin", Address: "10.0.0.2", Workload: "web-2", Health: pb.EndpointHealthUnhealthy}
	k.rows[state.Services] = []*pb.Row{{Key: "a", Payload: s.AppendTo(nil)}, {Key: "b", Payload: free.AppendTo(nil)}}
	k.rows[state.Endpoints] = []*pb.Row{{Key: "a", Payload: up.AppendTo(nil)}, {Key: "b", Payload: down.AppendTo(nil)}}
	w := httptest.NewRecorder()
	(&source{Source: k}).pushStatus(w, httptest.NewRequest("GET", "/debug/push_status", nil))
	const want = `{"pilot_eds_no_instances":{"outbound|81||web.shop":{}},"pilot_endpoint_not_ready":{"web-2.shop":{"proxy":"web-2.shop"}}}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != 200 || got != want {
		t.Errorf("%d %s, want %s", w.Code, got, want)
	}
}
