package envoyfilter

import (
	"slices"
	"strconv"
	"strings"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// Cluster patches a cluster; hosts are the services behind an inbound one. kept is false for one
// that is removed.
func (s *Set) Cluster(c Context, name string, hosts []string, body []byte) (out []byte, kept bool) {
	var m *cluster.Cluster
	for _, p := range s.by[networking.EnvoyFilter_CLUSTER] {
		if !p.in(c) || !clusterMatches(p.match.GetCluster(), name, hosts) {
			continue
		}
		if p.op == networking.EnvoyFilter_Patch_REMOVE {
			return nil, false
		}
		if !p.merges() {
			continue
		}
		if m == nil {
			m = &cluster.Cluster{}
			if proto.Unmarshal(body, m) != nil {
				return body, true
			}
		}
		mergeCluster(m, p)
		name = m.Name
	}
	if m == nil {
		return body, true
	}
	return encode.Patched(m), true
}

// Clusters are those that patches add on a side. Without a side they are added once: to what
// sidecars send, and to gateways.
func (s *Set) Clusters(c Context) []*cluster.Cluster {
	var out []*cluster.Cluster
	for _, p := range s.by[networking.EnvoyFilter_CLUSTER] {
		inbound := c == networking.EnvoyFilter_SIDECAR_INBOUND && p.match.GetContext() == networking.EnvoyFilter_ANY
		if p.op == networking.EnvoyFilter_Patch_ADD && p.in(c) && !inbound {
			out = append(out, p.value.(*cluster.Cluster))
		}
	}
	return out
}

// clusterMatches asks a cluster's name; a match without conditions is for every cluster.
func clusterMatches(m *networking.EnvoyFilter_ClusterMatch, name string, hosts []string) bool {
	if m == nil {
		return true
	}
	if m.Name != "" {
		return m.Name == name
	}
	n := parseName(name)
	if n.direction != "inbound" || len(hosts) == 0 {
		hosts = []string{n.host}
	}
	return (m.Subset == "" || m.Subset == n.subset) &&
		(m.Service == "" || slices.Contains(hosts, m.Service)) &&
		(m.PortNumber == 0 || m.PortNumber == n.port)
}

type clusterName struct {
	direction, subset, host string
	port                    uint32
}

// parseName reads DIRECTION|PORT|SUBSET|HOST, or the same with dots as names in TLS hellos have it.
// Other names have none of these.
func parseName(s string) clusterName {
	sep := "|"
	if strings.HasPrefix(s, "outbound_.") || strings.HasPrefix(s, "inbound_.") {
		sep = "_."
	}
	parts := strings.SplitN(s, sep, 4)
	if len(parts) < 4 {
		return clusterName{}
	}
	port, _ := strconv.ParseUint(parts[1], 10, 32)
	return clusterName{direction: parts[0], port: uint32(port), subset: parts[2], host: parts[3]}
}

// mergeCluster merges into a cluster. A value with a transport socket changes that alone: its
// settings are merged into those of the cluster's socket of the same name; where there is none, it
// becomes the cluster's socket, unless sockets are chosen by endpoint.
func mergeCluster(m *cluster.Cluster, p *Patch) {
	own := p.value.(*cluster.Cluster).GetTransportSocket()
	if own == nil {
		p.mergeInto(m)
		return
	}
	switch s := socketNamed(m, own.Name); {
	case s != nil:
		mergeSocket(s, own)
	case len(m.TransportSocketMatches) == 0:
		m.TransportSocket = proto.CloneOf(own)
	}
}

// socketNamed is the cluster's socket of a name, the first of those that are chosen by endpoint;
// nil without.
func socketNamed(m *cluster.Cluster, name string) *core.TransportSocket {
	for _, t := range m.TransportSocketMatches {
		if s := t.GetTransportSocket(); s != nil && s.Name == name {
			return s
		}
	}
	if s := m.TransportSocket; s != nil && s.Name == name && len(m.TransportSocketMatches) == 0 {
		return s
	}
	return nil
}

// mergeSocket merges the settings of a socket into those of another.
func mergeSocket(dst, src *core.TransportSocket) {
	if dst.GetTypedConfig() != nil && src.GetTypedConfig() != nil {
		dst.ConfigType = &core.TransportSocket_TypedConfig{TypedConfig: mergeAny(dst.GetTypedConfig(), src.GetTypedConfig())}
	}
}
