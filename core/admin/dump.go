package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	// Types that are always to be seen through, whatever plugins are linked beside the core.
	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
)

// section is where Envoy's config_dump shows resources of a type.
type section struct {
	dump, list, field string
	// active wraps an item, as listeners are.
	active bool
}

func sectionOf(typeURL string) section {
	switch strings.TrimPrefix(typeURL, prefix) {
	case short("cds"):
		return section{dump: "ClustersConfigDump", list: "dynamic_active_clusters", field: "cluster"}
	case short("lds"):
		return section{dump: "ListenersConfigDump", list: "dynamic_listeners", field: "listener", active: true}
	case short("rds"):
		return section{dump: "RoutesConfigDump", list: "dynamic_route_configs", field: "route_config"}
	case short("eds"):
		return section{dump: "EndpointsConfigDump", list: "dynamic_endpoint_configs", field: "endpoint_config"}
	case short("sds"):
		return section{dump: "SecretsConfigDump", list: "dynamic_active_secrets", field: "secret"}
	case short("ecds"):
		return section{dump: "EcdsConfigDump", list: "ecds_filters", field: "ecds_filter"}
	}
	return section{list: "resources", field: "resource"}
}

// parts are those that Envoy's dump always has; readers look for them.
var parts = []string{
	"BootstrapConfigDump", "ClustersConfigDump", "EcdsConfigDump", "ListenersConfigDump", "RoutesConfigDump",
	"ScopedRoutesConfigDump", "SecretsConfigDump",
}

// configDump shows what a proxy is to have, as Envoy's own page of this name does.
func (s *Server) configDump(w http.ResponseWriter, r *http.Request) {
	node := r.URL.Query().Get("proxyID")
	types, ok := s.cfg.Source.Dump(node)
	if !ok {
		http.Error(w, fmt.Sprintf("proxy %q is not connected (/debug/streams lists those that are)", node), http.StatusNotFound)
		return
	}
	configs := []map[string]any{}
	these := r.URL.Query().Get("types")
	for _, t := range types {
		if wanted(t.Type, these) {
			configs = append(configs, dumped(t).json())
		}
	}
	for _, part := range parts {
		if name := prefix + "envoy.admin.v3." + part; these == "" && !slices.ContainsFunc(configs, func(c map[string]any) bool { return c["@type"] == name }) {
			configs = append(configs, map[string]any{"@type": name})
		}
	}
	slices.SortFunc(configs, func(a, b map[string]any) int { return strings.Compare(a["@type"].(string), b["@type"].(string)) })
	write(w, map[string]any{"configs": configs})
}

// wanted reports whether a list of types, separated by commas, names a type; an empty list names
// all.
func wanted(url, types string) bool {
	if types == "" {
		return true
	}
	return slices.ContainsFunc(strings.Split(types, ","), func(t string) bool { return typeURL(t) == url })
}

// dumped is what a node is to have of a type, as pages show it.
type dumped TypeDump

func (t dumped) json() map[string]any {
	at := sectionOf(t.Type)
	items := []map[string]any{}
	for _, b := range t.Bodies {
		item := map[string]any{"version_info": b.Version(), at.field: t.body(b)}
		if at.active {
			item = map[string]any{"active_state": item}
		}
		if at.active || at.field == "secret" || at.field == "resource" {
			item["name"] = b.Name()
		}
		items = append(items, item)
	}
	name := t.Type
	if at.dump != "" {
		name = prefix + "envoy.admin.v3." + at.dump
	}
	return map[string]any{"@type": name, at.list: items}
}

// body returns a resource as JSON; that of a sensitive one says only that there is one.
func (t dumped) body(b *view.Body) any {
	if t.Sensitive {
		return map[string]any{"@type": t.Type, "name": b.Name(), "redacted": true}
	}
	raw, err := toJSON(b)
	if err != nil {
		return map[string]any{"@type": t.Type, "name": b.Name(), "fault": err.Error()}
	}
	return raw
}

func toJSON(b *view.Body) (json.RawMessage, error) {
	first, rest := b.Encoded(false)
	resource := slices.Concat(append([][]byte{first}, rest...)...)
	_, _, tag := protowire.ConsumeTag(resource)
	if tag < 0 {
		return nil, protowire.ParseError(tag)
	}
	value, n := protowire.ConsumeBytes(resource[tag:])
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	var a anypb.Any
	if err := proto.Unmarshal(value, &a); err != nil {
		return nil, err
	}
	a.Value = redact.Message(a.TypeUrl, a.Value)
	return protojson.MarshalOptions{UseProtoNames: true, Resolver: resolver{protoregistry.GlobalTypes}}.Marshal(&a)
}

// resolver reads messages of types that this program doesn't know as empty ones, so that what
// surrounds them is shown.
type resolver struct{ *protoregistry.Types }

func (r resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	t, err := r.Types.FindMessageByURL(url)
	if errors.Is(err, protoregistry.NotFound) {
		return (&emptypb.Empty{}).ProtoReflect().Type(), nil
	}
	return t, err
}
