package nacos

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// mapped is what an instance is in the mesh.
type mapped struct {
	members []instances.Member
	lost    instances.Tally
	// failed: nothing can be made of it.
	failed bool
}

// Labels that say more of an instance than its metadata.
const (
	clusterLabel   = "nacos/cluster"
	ephemeralLabel = "nacos/ephemeral" // false: it stays registered until somebody takes it out
)

// preserved begins keys of metadata that are Nacos' own settings.
// Source: com.alibaba.nacos.api.naming.PreservedMetadataKeys.
const preserved = "preserved."

// defaultCluster is the name of an instance's cluster where nobody named one.
const defaultCluster = "DEFAULT"

// members makes an instance's members. Weights are those of Nacos, so many times.
func (c *Config) members(k key, i *instance, times float64) mapped {
	out := mapped{lost: instances.Tally{}}
	of := k.String() + " " + i.IP + ":" + string(i.Port)
	if !hosts.IsIP(i.IP) && !hosts.ValidName(i.IP, false) {
		out.lost.Add(lostAddress, of)
		out.failed = true
		return out
	}
	labels := c.labels(i, of, out.lost)
	health, weight := i.health(times, of, out.lost)
	account := string(i.Metadata[c.Meta.ServiceAccount])
	external := i.Metadata[c.Meta.External]
	member := instances.Member{Of: of, External: external != "" && external != "false", Endpoint: sdk.Endpoint{
		Address: i.IP, Locality: c.locality(i, labels, of, out.lost), Network: hosts.Network("", labels),
		Weight: weight, ServiceAccount: account,
		TlsMode: hosts.TLSMode(labels, account), Health: health, Cluster: c.Cluster, Labels: labels,
	}}
	ports, ok := c.portsOf(i, of, out.lost)
	if !ok {
		out.lost.Add(lostPort, of)
		out.failed = true
		return out
	}
	for _, p := range ports {
		m := member
		m.Port, m.Endpoint.Port = p.port, p.at
		out.members = append(out.members, m)
	}
	return out
}

// served is a port of an instance.
type served struct {
	port instances.Port
	at   uint32
}

// portsOf are the instance's own and those in its metadata; not ok: one of them is none.
func (c *Config) portsOf(i *instance, of string, lost instances.Tally) (all []served, ok bool) {
	number := func(text loose) uint32 {
		n, err := strconv.ParseUint(string(text), 10, 16)
		if err != nil {
			return 0
		}
		return uint32(n)
	}
	at := number(i.Port)
	if at == 0 {
		return nil, false
	}
	service := c.ServicePort
	if service == 0 {
		service = at
	}
	all = []served{{instances.Port{Number: service, Protocol: c.protocol(i, of, lost)}, at}}
	for _, name := range slices.Sorted(maps.Keys(c.Ports)) {
		text := i.Metadata[name]
		if text == "" {
			continue
		}
		n := number(text)
		if n == 0 {
			return nil, false
		}
		if !slices.ContainsFunc(all, func(s served) bool { return s.port.Number == n }) { // two keys may say the same
			all = append(all, served{instances.Port{Number: n, Protocol: c.Ports[name]}, n})
		}
	}
	return all, true
}

// protocol is what an instance speaks at its own port. Dubbo's own protocol is TCP to proxies, and
// Triple is gRPC.
func (c *Config) protocol(i *instance, of string, lost instances.Tally) string {
	said := string(i.Metadata[c.Meta.Protocol])
	switch known := hosts.Protocol(said); {
	case known != "":
		return known
	case strings.EqualFold(said, "tri"):
		return "GRPC"
	case strings.EqualFold(said, "dubbo"):
		return "TCP"
	case said != "":
		lost.Add(lostSpeaks, of+" "+said)
		return "TCP"
	case i.Metadata[c.Meta.Secure] == "true":
		return "HTTPS"
	}
	return c.Protocol
}

// labels are an instance's metadata, and its cluster.
func (c *Config) labels(i *instance, of string, lost instances.Tally) map[string]string {
	out := make(map[string]string, len(i.Metadata)+1)
	for name, value := range i.Metadata {
		if strings.HasPrefix(name, preserved) {
			continue
		}
		if !instances.IsLabel(name) {
			lost.Add(lostLabel, of+" "+name)
			continue
		}
		out[name] = string(value)
	}
	if i.Cluster != "" {
		out[clusterLabel] = i.Cluster
	}
	if !i.Ephemeral.is() {
		out[ephemeralLabel] = "false"
	}
	return out
}

// maxWeight is the largest that Nacos knows.
// Source: com.alibaba.nacos.api.naming.pojo.Instance, Constants.MAX_WEIGHT_VALUE.
const maxWeight = 10_000

// weighs returns an instance's weight; not ok: it is none.
func (i *instance) weighs() (weight float64, ok bool) {
	if i.Weight == "" {
		return 1, true
	}
	w, err := strconv.ParseFloat(string(i.Weight), 64)
	if err != nil || !(w >= 0 && w <= maxWeight) { // NaN is neither
		return 1, false
	}
	return w, true
}

// fine is how many times as large the weights of a service are in which one is no whole number: so
// that hundredths count.
const fine = 100

// times is how many times as large a service's weights are in the mesh, whose weights are whole
// numbers.
func times(all map[string]*instance) float64 {
	for _, i := range all {
		if w, _ := i.weighs(); w != math.Trunc(w) {
			return fine
		}
	}
	return 1
}

// health is what an instance says of itself, and its weight. One of weight 0 is sent nothing.
func (i *instance) health(times float64, of string, lost instances.Tally) (pb.EndpointHealth, uint32) {
	w, ok := i.weighs()
	if !ok {
		lost.Add(lostWeight, fmt.Sprintf("%s: %s", of, i.Weight))
	}
	health := pb.EndpointHealthHealthy
	if !i.Healthy.is() || w == 0 {
		health = pb.EndpointHealthUnhealthy
	}
	return health, uint32(max(math.Round(w*times), 1))
}

// locality is region/zone/subzone: what a label says, or metadata, or the instance's cluster.
func (c *Config) locality(i *instance, labels map[string]string, of string, lost instances.Tally) string {
	if said := hosts.Locality("", labels); said != "" {
		return said
	}
	part := func(text string) string { return strings.ReplaceAll(text, "/", "-") }
	meta := func(key string) string { return part(string(i.Metadata[key])) }
	region, zone, subzone := meta(c.Locality.Region), meta(c.Locality.Zone), meta(c.Locality.Subzone)
	if i.Cluster != defaultCluster {
		switch c.Locality.Cluster {
		case clusterIsRegion:
			if region == "" {
				region = part(i.Cluster)
			}
		case clusterIsZone:
			if zone == "" {
				zone = part(i.Cluster)
			}
		}
	}
	if region == "" && zone+subzone != "" {
		region = c.Region
	}
	if region == "" && zone+subzone != "" {
		lost.Add(lostRegion, of)
		return ""
	}
	return strings.TrimRight(region+"/"+zone+"/"+subzone, "/")
}
