package endpoint

import (
	"cmp"
	"maps"
)

// Labels that say where a workload runs. Registries need not set them: they follow from what they
// know.
const (
	regionLabel  = "topology.kubernetes.io/region"
	zoneLabel    = "topology.kubernetes.io/zone"
	subzoneLabel = "topology.istio.io/subzone"
	clusterLabel = "topology.istio.io/cluster"
	networkLabel = "topology.istio.io/network"
	nodeLabel    = "kubernetes.io/hostname"

	// localityLabel says all of a locality; oldLocalityLabel is the name that it had before.
	localityLabel    = "topology.istio.io/locality"
	oldLocalityLabel = "istio-locality"
)

// Nearby are the labels by which a service prefers what is in the client's zone, in order.
func Nearby() []string { return []string{networkLabel, regionLabel, zoneLabel} }

// NodeFirst are those by which it prefers the client's node.
func NodeFirst() []string { return append(Nearby(), subzoneLabel, nodeLabel) }

// LocalityOf reads a locality from labels; false where they don't have one.
func LocalityOf(labels map[string]string) (string, bool) {
	region, zone, subzone := labels[regionLabel], labels[zoneLabel], labels[subzoneLabel]
	if region == "" && zone == "" && subzone == "" {
		whole := cmp.Or(labels[localityLabel], labels[oldLocalityLabel])
		return whole, whole != ""
	}
	return region + "/" + zone + "/" + subzone, true
}

// Topology returns labels with those that say where a workload runs.
func Topology(labels map[string]string, locality, cluster, network, node string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	l := Locality(locality)
	for label, value := range map[string]string{
		regionLabel: l.Region, zoneLabel: l.Zone, subzoneLabel: l.SubZone, clusterLabel: cluster, nodeLabel: node,
	} {
		if value != "" {
			out[label] = value
		}
	}
	if out[networkLabel] == "" && network != "" {
		out[networkLabel] = network
	}
	return out
}

// label is one label of an endpoint, among those that say where it runs. A host that clients look
// up has none.
func (e *Endpoint) label(name string) (value string, ok bool) {
	if e == nil || e.isHost() {
		return "", false
	}
	if known := e.topology(name); known != "" {
		return known, true
	}
	value, ok = e.Labels[name]
	return value, ok
}

// isHost reports whether the endpoint is the service's own host, which nobody says anything of.
func (e *Endpoint) isHost() bool {
	return e.Address == e.Host && len(e.Labels) == 0 && e.Locality == ""
}

// topology is what a label follows from; empty where it doesn't.
func (e *Endpoint) topology(label string) string {
	switch label {
	case regionLabel:
		return Locality(e.Locality).Region
	case zoneLabel:
		return Locality(e.Locality).Zone
	case subzoneLabel:
		return Locality(e.Locality).SubZone
	case clusterLabel:
		return e.Cluster
	case nodeLabel:
		return e.Node
	case networkLabel:
		return cmp.Or(e.Labels[label], e.Network)
	}
	return ""
}
