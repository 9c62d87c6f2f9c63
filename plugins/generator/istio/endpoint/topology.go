package endpoint

import "maps"

// Labels that say where a workload runs. Registries need not set them: they follow from what they know.
const (
	regionLabel  = "topology.kubernetes.io/region"
	zoneLabel    = "topology.kubernetes.io/zone"
	subzoneLabel = "topology.istio.io/subzone"
	clusterLabel = "topology.istio.io/cluster"
	networkLabel = "topology.istio.io/network"
	nodeLabel    = "kubernetes.io/hostname"
)

// Nearby are the labels by which a service prefers what is close, in order.
func Nearby() []string { return []string{networkLabel, regionLabel, zoneLabel, subzoneLabel} }

// NodeFirst are Nearby and the node itself.
func NodeFirst() []string { return append(Nearby(), nodeLabel) }

// LocalityOf reads a locality from labels; false where they don't have one.
func LocalityOf(labels map[string]string) (string, bool) {
	region, zone, subzone := labels[regionLabel], labels[zoneLabel], labels[subzoneLabel]
	if region == "" && zone == "" && subzone == "" {
		return "", false
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

// topology is the value of one label of an endpoint, among those that say where it runs.
func (e *Endpoint) topology(label string) string {
	if e == nil {
		return ""
	}
	l := Locality(e.Locality)
	known := map[string]string{regionLabel: l.Region, zoneLabel: l.Zone, subzoneLabel: l.SubZone, clusterLabel: e.Cluster}[label]
	switch {
	case known != "":
		return known
	case label == networkLabel && e.Labels[label] == "":
		return e.Network
	}
	return e.Labels[label]
}
