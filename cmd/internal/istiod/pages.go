// Package istiod has the debug pages that istiod has, under its paths and with its JSON, for tools
// that read them (istioctl, Kiali, scripts): https://istio.io/latest/docs/ops/diagnostic-tools/. It
// makes them out of what the core knows, and its metrics (Metrics). What the core does not know is
// left out or empty, as docs/differences.md says.
package istiod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/admin"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
)

// source is what the pages are made of.
type source struct {
	admin.Source
	// root is the mesh's root namespace where its settings name none.
	root string
	// cluster is the id of the control plane's own cluster.
	cluster string
}

// All returns the pages, made of what the core knows; root is the mesh's root namespace where its
// settings name none, cluster the id of the control plane's own cluster.
func All(of admin.Source, root, cluster string) []admin.Page {
	s := &source{of, root, cluster}
	all := []admin.Page{
		{Path: "/debug/syncz", About: "Istio's: ?namespace=NAMESPACE: what each proxy was sent and acknowledged", Serve: s.syncz},
		{Path: "/debug/adsz", About: "Istio's: ?proxyID=NODE: connected proxies, and the names that they ask for", Serve: s.adsz},
		{Path: "/debug/connections", About: "Istio's: connected proxies", Serve: s.connections},
		{Path: "/debug/instancesz", About: "Istio's: the services whose endpoints each proxy is", Serve: s.instancesz},
		{Path: "/debug/edsz", About: "Istio's: ?proxyID=NODE: endpoints of a proxy", Own: true, Serve: s.resources(endpointType)},
		{Path: "/debug/ecdsz", About: "Istio's: ?proxyID=NODE: extensions of a proxy", Serve: s.resources(extensionType)},
		{Path: "/debug/ndsz", About: "Istio's: ?proxyID=NODE: the table of names of a proxy", Own: true, Serve: s.resources(nameType)},
		{Path: "/debug/registryz", About: "Istio's: services", Serve: s.registryz},
		{Path: "/debug/endpointShardz", About: "Istio's: endpoints, by service and registry", Serve: s.endpointShardz},
		{Path: "/debug/endpointz", About: "Istio's: as endpointShardz", Serve: s.endpointShardz},
		{Path: "/debug/configz", About: "Istio's: config objects", Serve: s.configz},
		{Path: "/debug/resourcesz", About: "Istio's: kinds of config objects", Serve: s.resourcesz},
		{Path: "/debug/authorizationz", About: "Istio's: AuthorizationPolicies, by namespace", Serve: s.authorizationz},
		{Path: "/debug/telemetryz", About: "Istio's: Telemetries, by namespace", Serve: s.telemetryz},
		{Path: "/debug/mesh", About: "Istio's: the mesh's settings", Serve: s.mesh},
		{Path: "/debug/clusterz", About: "Istio's: clusters whose services are read", Serve: s.clusterz},
		{Path: "/debug/push_status", About: "Istio's: ports of services that nobody answers at, and endpoints that are not ready", Serve: s.pushStatus},
		{Path: "/debug/sidecarz", About: "Istio's: ?proxyID=NODE: what a proxy sees of the mesh, and the Sidecar that says so", Serve: s.sidecarz},
		{Path: "/debug/networkz", About: "Istio's: gateways of networks, as the mesh's settings name them", Serve: s.networkz},
	}
	for name, instead := range absent {
		all = append(all, admin.Page{Path: "/debug/" + name, Serve: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "Coxswain has no page "+name+": "+instead, http.StatusNotFound)
		}})
	}
	return all
}

// Has reports whether a path is of one of the pages.
func Has(path string) bool {
	return slices.ContainsFunc(All(nil, "", ""), func(p admin.Page) bool { return p.Path == path })
}

// absent are pages of istiod's that are not here, and what is there instead.
var absent = map[string]string{
	"pushcontext":      "there is no such object; /debug/authorizationz and /debug/networkz have its parts",
	"cachez":           "/debug/views shows what is generated and kept for proxies that share it",
	"mcsz":             "/debug/rowz?table=GROUP/KIND shows imported services",
	"ambientz":         "there is no ambient mode",
	"inject":           "sidecars are not injected",
	"krtz":             "tables are on /debug/tables and /debug/rowz",
	"force_disconnect": "`coxswain plugins` changes what runs; connections end by themselves (--keepaliveMaxServerConnectionAge)",
}

// write answers with JSON; messages have their fields' JSON names.
func write(w http.ResponseWriter, v any) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(redact.Strings(text.Bytes()))
}

// message is a protobuf message in a page, which has it without what is secret.
type message struct{ proto.Message }

// MarshalJSON implements json.Marshaler. Protobuf's own encoder adds spaces at random.
func (m message) MarshalJSON() ([]byte, error) {
	name := string(m.ProtoReflect().Descriptor().FullName())
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.Message)
	if err != nil {
		return nil, err
	}
	m.Message = m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(redact.Message(name, value), m.Message); err != nil {
		return nil, err
	}
	raw, err := protojson.MarshalOptions{Resolver: known{protoregistry.GlobalTypes}}.Marshal(m.Message)
	if a, ok := m.Message.(*anypb.Any); ok && err != nil { // of a type that this program has no description of
		return json.Marshal(map[string]any{"@type": a.TypeUrl, "value": a.Value})
	}
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = json.Compact(&text, raw)
	return text.Bytes(), err
}

// sorted returns a table's rows in order of keys.
func (s *source) sorted(table string) []*pb.Row {
	rows := slices.Clone(s.Rows(table))
	slices.SortFunc(rows, func(a, b *pb.Row) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) })
	return rows
}

// Identifier is what a control plane says of itself in control_plane.identifier, so that Istio's
// tools show it: its kind, the name of its instance (a pod's name), and its version.
func Identifier(instance, version string) string {
	text, err := json.Marshal(map[string]any{"Component": "coxswain", "ID": instance, "Info": map[string]string{"version": version}})
	if err != nil {
		panic(fmt.Sprintf("strings make JSON: %v", err)) // they always do
	}
	return string(text)
}
