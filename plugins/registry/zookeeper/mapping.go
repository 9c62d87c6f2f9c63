package zookeeper

import (
	"cmp"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Parameters that become no labels: what Dubbo and its consumers say to each other.
var (
	mechanics = setOf(
		`IDL-mode export registry.type max-server-recv-msg-size max-server-send-msg-size anyhost background bean.name bind.ip bind.port category check default deprecated disabled dubbo dynamic enabled
		environment executor-management-mode exporter ext.protocol file-cache generic group init interface ipv6 logger metadata-type methods
		metadata-service-port metadata-service-protocol module monitor name organization owner path pid port prefer.protocol prefer.serialization provider.random-port qos.accept.foreign.ip qos.enable qos.host
		qos.port register register-mode registry registry.role REGISTRY_CLUSTER meta-v registry-type release revision serialization service-name-mapping service.filter side
		ssl-enabled timestamp use-as-config-center use-as-metadata-center version weight`,
	)
	policies = setOf(`accesslog actives async cluster connections delay executes executor forks iothreads limit loadbalance merger mock payload
		reconnect heartbeat retries router sent sticky stub timeout tps tps.limit.rate validation cache callbacks threadpool threads queues warmup
		warmup.step max-server-workers`)
	secret = setOf(`token username password accesskeyid secretaccesskey`)
)

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

const mostLabels = 64

// Sorts of members: of two at one place that by interface is served, and that an instance says the
// same by application is no loss.
const (
	byInterface = iota
	byApplication
)

// member makes an offer's; ok: it can be used. What is lost is said in either case.
func (c *Config) member(o *offer, rules []*override) (m instances.Member, ok bool) {
	m.Lost = instances.Tally{}
	lost := m.Lost.Add
	if !hosts.IsIP(o.address) && !hosts.ValidName(o.address, false) || o.address == "0.0.0.0" || o.address == "::" {
		lost(lostAddress, o.of)
		return m, false
	}
	if o.port == 0 {
		lost(lostPort, o.of)
		return m, false
	}
	speaks := o.speaks()
	protocol := c.Protocols[speaks]
	if protocol == "" {
		lost(lostSpeaks, o.of)
		protocol = "TCP"
	}
	if extra := o.parameters["ext.protocol"]; extra != "" && !strings.EqualFold(extra, speaks) {
		lost(lostExtra, o.of)
	}
	if o.parameters["ssl-enabled"] == "true" {
		lost(lostTLS, o.of)
	}
	weight, disabled := overridden(o, rules)
	health := pb.EndpointHealthHealthy
	if disabled {
		health = pb.EndpointHealthUnhealthy
	}
	labels, account := c.labels(o, lost), o.parameters[c.Meta.ServiceAccount]
	m.Of, m.Sort, m.Stamp, m.Port = o.of, byInterface, o.stamp, instances.Port{Number: c.servicePort(o), Protocol: protocol}
	if !o.byName {
		m.Sort = byApplication
	}
	m.Endpoint = sdk.Endpoint{
		Address: o.address, Port: o.port, Labels: labels, Locality: c.locality(o, labels), Network: hosts.Network("", labels), Weight: weight, Health: health,
		ServiceAccount: account, TlsMode: hosts.TLSMode(labels, account), Cluster: c.Cluster, Workload: o.owner,
	}
	return m, true
}

// servicePort is the number that an offer's port has in the mesh.
func (c *Config) servicePort(o *offer) uint32 { return cmp.Or(c.ServicePorts[o.speaks()], o.port) }

// labels are an offer's parameters, but for Dubbo's own, and those that the config names.
func (c *Config) labels(o *offer, lost func(instances.Reason, string)) map[string]string {
	out := map[string]string{}
	odd, policy := 0, ""
	for _, k := range sortedKeys(o.parameters) {
		v := o.parameters[k]
		_, method, _ := strings.Cut(k, ".")
		switch {
		case v == "" || mechanics[k] || strings.HasPrefix(k, "dubbo."):
		case secret[k]:
			lost(lostToken, o.of)
		case policies[k] || policies[method]:
			policy = k
		case !instances.IsLabel(k) || len(out) >= mostLabels:
			odd++
		default:
			out[k] = v
		}
	}
	if odd > 0 {
		lost(lostLabels, o.of)
	}
	if policy != "" {
		lost(lostPolicy, policy+" of "+o.of)
	}
	for k, v := range map[string]string{"application": o.owner, "group": o.service.group, "version": o.service.version} {
		if v != "" && !o.application {
			out[k] = v
		}
	}
	for label, parameter := range c.Labels {
		if v := o.parameters[parameter]; v != "" {
			out[label] = v
		}
	}
	return out
}

// locality is region/zone/subzone.
func (c *Config) locality(o *offer, labels map[string]string) string {
	if said := hosts.Locality("", labels); said != "" {
		return said
	}
	part := func(key string) string { return strings.ReplaceAll(o.parameters[key], "/", "-") }
	return strings.TrimRight(part(c.Meta.Region)+"/"+part(c.Meta.Zone)+"/"+part(c.Meta.Subzone), "/")
}
