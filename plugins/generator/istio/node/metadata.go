package node

import (
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
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
	// NoAgent is set by `coxswain bootstrap` for proxies that run without an agent: nobody serves them certificates.
	NoAgent bool // COXSWAIN_NO_AGENT
	// Interception is REDIRECT, TProxy or None; empty: REDIRECT.
	Interception string // INTERCEPTION_MODE
	// Unprivileged: the process can't open ports below 1024.
	Unprivileged bool // UNPRIVILEGED_POD
	// DNSCapture: the agent answers the workload's DNS queries.
	DNSCapture bool // DNS_CAPTURE
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
		NoAgent:        truth(f["COXSWAIN_NO_AGENT"]),
		Interception:   f["INTERCEPTION_MODE"].GetStringValue(),
		Unprivileged:   truth(f["UNPRIVILEGED_POD"]),
		DNSCapture:     truth(f["DNS_CAPTURE"]),
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
