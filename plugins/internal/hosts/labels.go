package hosts

import (
	"maps"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Labels that say where an endpoint is and how it is spoken to.
const (
	TLSModeLabel  = "security.istio.io/tlsMode"
	ClusterLabel  = "topology.istio.io/cluster"
	NetworkLabel  = "topology.istio.io/network"
	LocalityLabel = "topology.istio.io/locality"
	SubzoneLabel  = "topology.istio.io/subzone"
	RegionLabel   = "topology.kubernetes.io/region"
	ZoneLabel     = "topology.kubernetes.io/zone"
	HostnameLabel = "kubernetes.io/hostname"

	// oldLocalityLabel is the name that LocalityLabel had before.
	oldLocalityLabel = "istio-locality"
)

// Values of an endpoint's TLS mode.
const (
	TLSModeIstio    = "istio"
	TLSModeDisabled = "disabled"
)

// TLSMode reports whether an endpoint speaks mutual TLS: as its label says, and otherwise if it has
// a service account.
func TLSMode(labels map[string]string, serviceAccount string) string {
	if mode, ok := labels[TLSModeLabel]; ok {
		return mode
	}
	if serviceAccount != "" {
		return TLSModeIstio
	}
	return TLSModeDisabled
}

// Locality returns region/zone/subzone as declared, or as a label says it. In the label's value
// dots may stand for slashes.
func Locality(declared string, labels map[string]string) string {
	if declared != "" {
		return declared
	}
	value := labels[LocalityLabel]
	if value == "" {
		value = labels[oldLocalityLabel]
	}
	if strings.Contains(value, "/") {
		return value
	}
	return strings.ReplaceAll(value, ".", "/")
}

// Network returns the network as declared, or as a label says it.
func Network(declared string, labels map[string]string) string {
	if declared != "" {
		return declared
	}
	return labels[NetworkLabel]
}

// AllLabels returns an endpoint's labels together with those that its locality, cluster, network
// and node imply: what subsets, selectors and failover priorities select by. Rows hold only labels
// that were declared.
func AllLabels(e *pb.Endpoint) map[string]string {
	return Augmented(e.Labels, e.Locality, e.Cluster, e.Network, e.Node)
}

// Augmented adds to labels those that a locality, cluster, network and node imply; a label that
// says a network already stays. It returns a new map.
func Augmented(labels map[string]string, locality, cluster, network, node string) map[string]string {
	out := make(map[string]string, len(labels)+6)
	maps.Copy(out, labels)
	if out[NetworkLabel] != "" {
		network = out[NetworkLabel]
	}
	region, rest, _ := strings.Cut(locality, "/")
	zone, rest, _ := strings.Cut(rest, "/")
	subzone, _, _ := strings.Cut(rest, "/")
	for _, l := range [...][2]string{
		{RegionLabel, region}, {ZoneLabel, zone}, {SubzoneLabel, subzone},
		{ClusterLabel, cluster}, {NetworkLabel, network}, {HostnameLabel, node},
	} {
		if l[1] != "" {
			out[l[0]] = l[1]
		}
	}
	return out
}

// Canonical returns the canonical service and revision of a workload for telemetry: what its labels
// say in Istio's order of preference. The service's last resort is the workload's name; the
// revision may be empty.
func Canonical(labels map[string]string, workload string) (service, revision string) {
	service = first(labels, "service.istio.io/canonical-name", "app.kubernetes.io/name", "app")
	if service == "" {
		service = workload
	}
	return service, first(labels, "service.istio.io/canonical-revision", "app.kubernetes.io/version", "version")
}

func first(labels map[string]string, keys ...string) string {
	for _, k := range keys {
		if v := labels[k]; v != "" {
			return v
		}
	}
	return ""
}
