package node

import (
	"encoding/json"
	"maps"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/shared/expressions"
)

// Ways in which a workload's traffic comes to its proxy, besides REDIRECT.
const (
	TProxy = "TPROXY"
	None   = "NONE"
)

// Metadata is what the generator reads of a node's metadata.
type Metadata struct {
	Namespace      string            // NAMESPACE
	Labels         map[string]string // LABELS
	PodPorts       map[string]uint32 // POD_PORTS: those that containers name
	StaticLabels   map[string]string // STATIC_LABELS: those that were set for the proxy, which no registry knows
	Annotations    map[string]string // ANNOTATIONS: those of OpenTelemetry
	InstanceIPs    []string          // INSTANCE_IPS
	ServiceAccount string            // SERVICE_ACCOUNT
	ClusterID      string            // CLUSTER_ID
	MeshID         string            // MESH_ID
	Network        string            // NETWORK
	NetworkView    []string          // REQUESTED_NETWORK_VIEW
	Workload       string            // WORKLOAD_NAME
	NodeName       string            // NODE_NAME
	// Interception is REDIRECT, TProxy or None; empty: REDIRECT.
	Interception string // INTERCEPTION_MODE
	// Unprivileged: the process can't open ports below 1024.
	Unprivileged bool // UNPRIVILEGED_POD
	// StatusPort and PrometheusPort are those of listeners of the bootstrap; 0 if nothing is said.
	StatusPort, PrometheusPort uint32 // ENVOY_STATUS_PORT, ENVOY_PROMETHEUS_PORT
	// HTTPProxyPort is where the workload finds a proxy for HTTP, 0 for nowhere; nil where nothing
	// is said.
	HTTPProxyPort *uint32 // HTTP_PROXY_PORT
	// SelfDiscovery: the proxy asks for the endpoints of its own kind, to know how they are spread
	// over zones.
	SelfDiscovery bool // ENABLE_SELF_DISCOVERY
	// Resolver is where the agent answers the workload's DNS queries, IP:PORT; empty: it doesn't.
	Resolver string // DNS_PROXY_ADDR, with DNS_CAPTURE
	// HTTP10: requests of HTTP/1.0 are taken.
	HTTP10 bool // HTTP10
	// IdleTimeout of connections, 0 for none; nil where nothing is said.
	IdleTimeout *time.Duration // IDLE_TIMEOUT
	// Balanced: connections are shared out evenly among the proxy's threads.
	BalancedInbound, BalancedOutbound bool // INBOUND_LISTENER_EXACT_BALANCE, OUTBOUND_LISTENER_EXACT_BALANCE
	// ProxyConfig is the proxy's own; nil where it says none, so that the mesh's counts.
	ProxyConfig *meshv1.ProxyConfig // PROXY_CONFIG
	// Client and Server say where the proxy has its certificates. `coxswain bootstrap` says it for
	// proxies that run without an agent.
	Client, Server encode.Certificates // TLS_CLIENT_…, TLS_SERVER_…, credential, file-credential, COXSWAIN_NO_AGENT, COXSWAIN_SECRETS
	// Stock: the bootstrap may allow no large regular expressions.
	Stock bool // COXSWAIN_NO_AGENT, COXSWAIN_REGEX_PROGRAM
	// Version of Istio's proxy; empty where it says none.
	Version string // ISTIO_VERSION
	// Texts are all values that are texts.
	Texts Texts
}

func parseMetadata(s *structpb.Struct) Metadata {
	f := s.GetFields()
	return Metadata{
		Namespace:      f["NAMESPACE"].GetStringValue(),
		Labels:         stringMap(f["LABELS"]),
		PodPorts:       podPorts(f["POD_PORTS"]),
		StaticLabels:   stringMap(f["STATIC_LABELS"]),
		Annotations:    openTelemetry(stringMap(f["ANNOTATIONS"])),
		InstanceIPs:    list(f["INSTANCE_IPS"]),
		ServiceAccount: f["SERVICE_ACCOUNT"].GetStringValue(),
		ClusterID:      f["CLUSTER_ID"].GetStringValue(),
		MeshID:         f["MESH_ID"].GetStringValue(),
		Network:        f["NETWORK"].GetStringValue(),
		NetworkView:    list(f["REQUESTED_NETWORK_VIEW"]),
		Workload:       f["WORKLOAD_NAME"].GetStringValue(),
		NodeName:       f["NODE_NAME"].GetStringValue(),
		Interception:   f["INTERCEPTION_MODE"].GetStringValue(),
		Unprivileged:   truth(f["UNPRIVILEGED_POD"]),
		SelfDiscovery:  truth(f["ENABLE_SELF_DISCOVERY"]),
		Resolver:       resolver(f),
		HTTP10:         f["HTTP10"].GetStringValue() == "1",
		IdleTimeout:    duration(f["IDLE_TIMEOUT"]),
		ProxyConfig:    proxyConfig(f["PROXY_CONFIG"]),
		Client:         certificates(f, "CLIENT"),
		Server:         certificates(f, "SERVER"),
		Version:        f["ISTIO_VERSION"].GetStringValue(),
		Texts:          texts(f),
		Stock:          expressions.IsStock(truth(f["COXSWAIN_NO_AGENT"]), f["COXSWAIN_REGEX_PROGRAM"] != nil),

		StatusPort:     port(f["ENVOY_STATUS_PORT"]),
		PrometheusPort: port(f["ENVOY_PROMETHEUS_PORT"]),
		HTTPProxyPort:  optionalPort(f["HTTP_PROXY_PORT"]),

		BalancedInbound:  truth(f["INBOUND_LISTENER_EXACT_BALANCE"]),
		BalancedOutbound: truth(f["OUTBOUND_LISTENER_EXACT_BALANCE"]),
	}
}

// podPorts reads the ports of a pod's containers: a list as JSON, as agents write it.
func podPorts(v *structpb.Value) map[string]uint32 {
	var list []struct {
		Name          string `json:"name"`
		ContainerPort uint32 `json:"containerPort"`
	}
	if v.GetStringValue() == "" || json.Unmarshal([]byte(v.GetStringValue()), &list) != nil {
		return nil
	}
	out := map[string]uint32{}
	for _, p := range list {
		if p.Name != "" {
			out[p.Name] = p.ContainerPort
		}
	}
	return out
}

// openTelemetry leaves the annotations that are about spans: a pod may have many others.
func openTelemetry(annotations map[string]string) map[string]string {
	maps.DeleteFunc(annotations, func(k, _ string) bool { return !strings.HasPrefix(k, "resource.opentelemetry.io/") })
	return annotations
}

func stringMap(v *structpb.Value) map[string]string {
	fields := v.GetStructValue().GetFields()
	if len(fields) == 0 {
		return nil
	}
	out := make(map[string]string, len(fields))
	for k, e := range fields {
		out[k] = e.GetStringValue()
	}
	return out
}

func list(v *structpb.Value) []string {
	s := v.GetStringValue()
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// port reads a port, which agents write as a number or as a string; 0 where it is none.
func port(v *structpb.Value) uint32 {
	if n := v.GetNumberValue(); n > 0 && n <= math.MaxUint16 {
		return uint32(n)
	}
	n, err := strconv.ParseUint(v.GetStringValue(), 10, 16)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// optionalPort reads a port; nil where there is none.
func optionalPort(v *structpb.Value) *uint32 {
	n := port(v)
	if n == 0 && v.GetStringValue() != "0" {
		return nil
	}
	return &n
}

// truth reads a switch, which agents write as a string or as a bool.
func truth(v *structpb.Value) bool {
	text, err := strconv.ParseBool(v.GetStringValue())
	return v.GetBoolValue() || err == nil && text
}

// agentsResolver is where Istio's agent answers DNS if it doesn't say.
const agentsResolver = "127.0.0.1:15053"

// resolver is where the agent answers DNS; what is no address means the usual one.
func resolver(f map[string]*structpb.Value) string {
	if !truth(f["DNS_CAPTURE"]) {
		return ""
	}
	host, port, err := net.SplitHostPort(f["DNS_PROXY_ADDR"].GetStringValue())
	if host == "localhost" {
		host = "127.0.0.1"
	}
	at, bad := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil || bad != nil || at.Port() == 0 {
		return agentsResolver
	}
	return at.String()
}
