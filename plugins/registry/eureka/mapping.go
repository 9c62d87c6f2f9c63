package eureka

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// mapped is what an instance is in the mesh: members of services.
type mapped struct {
	services map[string][]instances.Member
	lost     instances.Tally
	// failed: nothing can be made of it.
	failed bool
}

// Labels that say more of an instance than its metadata.
const (
	applicationLabel = "eureka/application" // where its service is called otherwise
	groupLabel       = "eureka/group"
	asgLabel         = "eureka/asg"
)

// members makes an instance's members.
func (c *Config) members(i *instance) mapped {
	out := mapped{services: map[string][]instances.Member{}, lost: instances.Tally{}}
	address := i.IP
	if c.Address == atHostname {
		address = i.Host
	}
	if !hosts.IsIP(address) && (c.Address != atHostname || !hosts.ValidName(address, false)) {
		out.lost.Add(lostAddress, i.key())
		out.failed = true
		return out
	}
	labels := c.labels(i, out.lost)
	health, weight := c.health(i, out.lost)
	account := string(i.Metadata[c.Meta.ServiceAccount])
	external := i.Metadata[c.Meta.External]
	member := instances.Member{Of: i.key(), External: external != "" && external != "false", Endpoint: sdk.Endpoint{
		Address: address, Locality: c.locality(i, labels, out.lost), Network: hosts.Network("", labels), Weight: weight, ServiceAccount: account,
		TlsMode: hosts.TLSMode(labels, account), Health: health, Cluster: c.Cluster, Workload: i.ID, Node: i.Host,
	}}
	for _, p := range c.ports(i, out.lost) {
		for _, service := range p.services {
			m := member
			m.Port, m.Endpoint.Port, m.Endpoint.Labels = p.port, p.at, labels
			if !strings.EqualFold(service, i.App) {
				m.Endpoint.Labels = maps.Clone(labels)
				m.Endpoint.Labels[applicationLabel] = i.App
			}
			out.services[service] = append(out.services[service], m)
		}
	}
	out.failed = len(out.services) == 0
	return out
}

// served is a port of an instance, and the services that it belongs to.
type served struct {
	services []string
	port     instances.Port
	at       uint32
}

// ports are those that are enabled. Source: com.netflix.appinfo.InstanceInfo.PortWrapper; a port
// that doesn't say is enabled, a secure one is not.
func (c *Config) ports(i *instance, lost instances.Tally) (all []served) {
	bad := false
	of := func(p port, vip, protocol string, service uint32) {
		n, err := strconv.ParseUint(string(p.Number), 10, 16)
		if err != nil || n == 0 {
			bad = true
			return
		}
		if service == 0 {
			service = uint32(n)
		}
		all = append(all, served{c.services(i, vip), instances.Port{Number: service, Protocol: protocol}, uint32(n)})
	}
	if i.Port.Number != "" && i.Port.Enabled != "false" {
		protocol := hosts.Protocol(string(i.Metadata[c.Meta.Protocol]))
		if protocol == "" {
			protocol = c.Protocol
		}
		of(i.Port, i.VIP, protocol, c.ServicePort)
	}
	if i.Secure.Number != "" && i.Secure.Enabled == "true" {
		of(i.Secure, i.SecureVIP, "HTTPS", c.SecureServicePort)
	}
	if bad || len(all) == 0 {
		lost.Add(lostPort, i.key())
	}
	return all
}

// services are the names of an instance's services at a port: its VIP addresses, or its
// application. A VIP address may end with the port, as Netflix' own do.
func (c *Config) services(i *instance, vip string) (all []string) {
	if c.By == byVIP {
		for one := range strings.SplitSeq(vip, ",") {
			one, _, _ = strings.Cut(strings.TrimSpace(one), ":")
			if one = strings.ToLower(one); one != "" && !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	if len(all) == 0 {
		all = []string{strings.ToLower(i.App)}
	}
	return all
}

// labels are an instance's metadata, and its group and auto-scaling group.
func (c *Config) labels(i *instance, lost instances.Tally) map[string]string {
	out := make(map[string]string, len(i.Metadata)+1)
	for key, value := range i.Metadata {
		if !instances.IsLabel(key) {
			lost.Add(lostLabel, i.key()+" "+key)
			continue
		}
		out[key] = string(value)
	}
	for key, value := range map[string]string{groupLabel: i.Group, asgLabel: i.ASG} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}

// health is what an instance's status says, and its weight. One of weight 0 is sent nothing.
func (c *Config) health(i *instance, lost instances.Tally) (pb.EndpointHealth, uint32) {
	weight := uint64(1)
	if text := string(i.Metadata[c.Meta.Weight]); text != "" {
		n, err := strconv.ParseUint(text, 10, 24)
		if err != nil {
			lost.Add(lostWeight, fmt.Sprintf("%s: %s", i.key(), text))
			n = 1
		}
		weight = n
	}
	status := i.Status
	if !slices.Contains(statuses, status) {
		lost.Add(lostStatus, fmt.Sprintf("%s: %s", i.key(), status))
		status = unknown
	}
	switch {
	case weight > 0 && slices.Contains(c.Healthy, status):
		return pb.EndpointHealthHealthy, uint32(weight)
	case status == outOfService:
		return pb.EndpointHealthDraining, uint32(max(weight, 1))
	}
	return pb.EndpointHealthUnhealthy, uint32(max(weight, 1))
}

// locality is region/zone/subzone: what a label says, or metadata, or Amazon's availability zone,
// whose region is its name without the last letter.
func (c *Config) locality(i *instance, labels map[string]string, lost instances.Tally) string {
	if said := hosts.Locality("", labels); said != "" {
		return said
	}
	meta := func(key string) string { return strings.ReplaceAll(string(i.Metadata[key]), "/", "-") }
	region, zone, subzone := meta(c.Locality.Region), meta(c.Locality.Zone), meta(c.Locality.Subzone)
	if aws := string(i.DataCenter.Metadata["availability-zone"]); aws != "" {
		if zone == "" {
			zone = strings.ReplaceAll(aws, "/", "-")
		}
		if last := len(aws) - 1; region == "" && last > 0 && 'a' <= aws[last] && aws[last] <= 'z' && '0' <= aws[last-1] && aws[last-1] <= '9' {
			region = strings.ReplaceAll(aws[:last], "/", "-")
		}
	}
	if region == "" {
		region = c.Region
	}
	if region == "" && zone+subzone != "" {
		lost.Add(lostRegion, i.key())
		return ""
	}
	return strings.TrimRight(region+"/"+zone+"/"+subzone, "/")
}
