package node

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	meshv1 "istio.io/api/mesh/v1alpha1"
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
	InstanceIPs    []string          // INSTANCE_IPS
	ServiceAccount string            // SERVICE_ACCOUNT
	ClusterID      string            // CLUSTER_ID
	MeshID         string            // MESH_ID
	Network        string            // NETWORK
	Workload       string            // WORKLOAD_NAME
	NodeName       string            // NODE_NAME
	// NoAgent is set by `coxswain bootstrap` for proxies that run without an agent: nobody serves them certificates.
	NoAgent bool // COXSWAIN_NO_AGENT
	// Interception is REDIRECT, TProxy or None; empty: REDIRECT.
	Interception string // INTERCEPTION_MODE
	// Unprivileged: the process can't open ports below 1024.
	Unprivileged bool // UNPRIVILEGED_POD
	// DNSCapture: the agent answers the workload's DNS queries.
	DNSCapture bool // DNS_CAPTURE
	// HTTP10: requests of HTTP/1.0 are taken.
	HTTP10 bool // HTTP10
	// IdleTimeout of connections; 0 if unset.
	IdleTimeout time.Duration // IDLE_TIMEOUT
	// Balanced: connections are shared out evenly among the proxy's threads.
	BalancedInbound, BalancedOutbound bool // INBOUND_LISTENER_EXACT_BALANCE, OUTBOUND_LISTENER_EXACT_BALANCE
	// ProxyConfig is the proxy's own; nil where it says none, so that the mesh's counts.
	ProxyConfig *meshv1.ProxyConfig // PROXY_CONFIG
	// Certificates are files that the proxy has instead of the agent's certificates.
	Client, Server Certificates // TLS_CLIENT_…, TLS_SERVER_…
}

func parseMetadata(s *structpb.Struct) Metadata {
	f := s.GetFields()
	return Metadata{
		Namespace:      f["NAMESPACE"].GetStringValue(),
		Labels:         stringMap(f["LABELS"]),
		InstanceIPs:    list(f["INSTANCE_IPS"]),
		ServiceAccount: f["SERVICE_ACCOUNT"].GetStringValue(),
		ClusterID:      f["CLUSTER_ID"].GetStringValue(),
		MeshID:         f["MESH_ID"].GetStringValue(),
		Network:        f["NETWORK"].GetStringValue(),
		Workload:       f["WORKLOAD_NAME"].GetStringValue(),
		NodeName:       f["NODE_NAME"].GetStringValue(),
		NoAgent:        truth(f["COXSWAIN_NO_AGENT"]),
		Interception:   f["INTERCEPTION_MODE"].GetStringValue(),
		Unprivileged:   truth(f["UNPRIVILEGED_POD"]),
		DNSCapture:     truth(f["DNS_CAPTURE"]),
		HTTP10:         f["HTTP10"].GetStringValue() == "1" || truth(f["HTTP10"]),
		IdleTimeout:    duration(f["IDLE_TIMEOUT"]),
		ProxyConfig:    proxyConfig(f["PROXY_CONFIG"]),
		Client:         certificates(f, "CLIENT"),
		Server:         certificates(f, "SERVER"),

		BalancedInbound:  truth(f["INBOUND_LISTENER_EXACT_BALANCE"]),
		BalancedOutbound: truth(f["OUTBOUND_LISTENER_EXACT_BALANCE"]),
	}
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

// truth reads a switch, which agents write as a string or as a bool.
func truth(v *structpb.Value) bool {
	return v.GetBoolValue() || strings.EqualFold(v.GetStringValue(), "true")
}
