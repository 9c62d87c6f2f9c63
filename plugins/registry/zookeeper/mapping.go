package zookeeper

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// member is an offer as the mesh knows it.
type member struct {
	offer    *offer
	port     uint32 // of the service
	protocol string // of the mesh
	endpoint sdk.Endpoint
}

// Parameters that become no labels: what Dubbo and its consumers say to each other.
var (
	mechanics = setOf(`IDL-mode export registry.type max-server-recv-msg-size max-server-send-msg-size anyhost background bean.name bind.ip bind.port category check default deprecated disabled dubbo dynamic enabled
		environment executor-management-mode exporter ext.protocol file-cache generic group init interface ipv6 logger metadata-type methods
		metadata-service-port metadata-service-protocol module monitor name organization owner path pid port prefer.protocol prefer.serialization provider.random-port qos.accept.foreign.ip qos.enable qos.host
		qos.port register register-mode registry registry.role REGISTRY_CLUSTER meta-v registry-type release revision serialization service-name-mapping service.filter side
		ssl-enabled timestamp use-as-config-center use-as-metadata-center version weight`)
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

// member makes one; ok: the offer can be used.
func (c *Config) member(o *offer, rules []*override, lost func(reason, string)) (m member, ok bool) {
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
	weight, disabled := settled(o, rules)
	health := pb.EndpointHealthHealthy
	if disabled {
		health = pb.EndpointHealthUnhealthy
	}
	labels, account := c.labels(o, lost), o.parameters[c.Meta.ServiceAccount]
	return member{offer: o, port: c.servicePort(o), protocol: protocol, endpoint: sdk.Endpoint{
		Address: o.address, Port: o.port, Labels: labels, Locality: c.locality(o, labels), Network: hosts.Network("", labels), Weight: weight, Health: health,
		ServiceAccount: account, TlsMode: hosts.TLSMode(labels, account), Cluster: c.Cluster, Workload: o.owner,
	}}, true
}

// servicePort is the number that an offer's port has in the mesh.
func (c *Config) servicePort(o *offer) uint32 { return cmp.Or(c.ServicePorts[o.speaks()], o.port) }

// labels are an offer's parameters, but for Dubbo's own, and those that the config names.
func (c *Config) labels(o *offer, lost func(reason, string)) map[string]string {
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
		case !isLabel(k) || len(out) >= mostLabels:
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

// isLabel reports whether a text can be a label's key: what selectors select by.
// Source: Kubernetes, "Labels and Selectors", syntax and character set.
func isLabel(key string) bool {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		prefix, name = "", key
	} else if !hosts.ValidName(prefix, false) {
		return false
	}
	if name == "" || len(name) > 63 {
		return false
	}
	inside := func(r rune) bool { return strings.ContainsRune("-_.", r) }
	alphanumeric := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !inside(r) && !alphanumeric(r) }) {
		return false
	}
	return !inside(rune(name[0])) && !inside(rune(name[len(name)-1]))
}

// locality is region/zone/subzone.
func (c *Config) locality(o *offer, labels map[string]string) string {
	if said := hosts.Locality("", labels); said != "" {
		return said
	}
	part := func(key string) string { return strings.ReplaceAll(o.parameters[key], "/", "-") }
	return strings.TrimRight(part(c.Meta.Region)+"/"+part(c.Meta.Zone)+"/"+part(c.Meta.Subzone), "/")
}

// assemble makes the service of a host, and its endpoints, of all that is offered there; nil where nothing is.
func (c *Config) assemble(host string, offers []*offer, rules func(*offer) []*override, lost func(reason, string)) (*sdk.Service, []*sdk.Endpoint) {
	if len(offers) == 0 {
		return nil, nil
	}
	if !hosts.ValidName(host, false) {
		for _, o := range offers {
			lost(lostHost, o.of)
		}
		return nil, nil
	}
	first := offers[0].service
	for _, o := range offers {
		if o.service.String() < first.String() {
			first = o.service
		}
	}
	var all []member
	for _, o := range c.distinct(offers, lost) {
		if o.service.name != first.name {
			lost(lostCase, o.service.String())
		} else if m, ok := c.member(o, rules(o), lost); ok {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	weigh(all)
	s := &sdk.Service{Host: host, Namespace: c.MeshNamespace, Name: first.String(), Registry: "Zookeeper", Ports: servicePorts(all, lost)}
	if !slices.ContainsFunc(all, func(m member) bool { return hosts.IsIP(m.endpoint.Address) }) {
		s.Resolution = pb.ServiceResolutionDns
	}
	var endpoints []*sdk.Endpoint
	for i := range all {
		m := &all[i]
		if s.Resolution == pb.ServiceResolutionStatic && !hosts.IsIP(m.endpoint.Address) {
			lost(lostName, m.offer.of)
			continue
		}
		at, ok := slices.BinarySearchFunc(s.Ports, m.port, func(p *sdk.Port, n uint32) int { return cmp.Compare(p.Number, n) })
		if !ok {
			continue // counted as a port too many
		}
		e := &m.endpoint
		e.Host, e.Namespace, e.PortName, e.ServicePort = host, c.MeshNamespace, s.Ports[at].Name, m.port
		endpoints = append(endpoints, e)
	}
	return s, endpoints
}

// weigh has members of weight 0 be sent nothing, unless all that could be are: then they have equal shares, as Dubbo
// gives them. A provider of dubbo-go's that was given no weight says 0.
func weigh(all []member) {
	some := map[uint32]bool{}
	for _, m := range all {
		some[m.port] = some[m.port] || m.endpoint.Health == pb.EndpointHealthHealthy && m.endpoint.Weight > 0
	}
	for i := range all {
		if e := &all[i].endpoint; e.Weight == 0 {
			if e.Weight = 1; some[all[i].port] {
				e.Health = pb.EndpointHealthUnhealthy
			}
		}
	}
}

// distinct sorts offers, and leaves out those that are where another one is: that by interface stays, then the newer one.
// That an instance says the same by application as by interface is no loss.
func (c *Config) distinct(all []*offer, lost func(reason, string)) []*offer {
	sooner := func(o *offer) int {
		if o.byName {
			return 0
		}
		return 1
	}
	same := func(a, b *offer) int {
		return cmp.Or(strings.Compare(a.address, b.address), cmp.Compare(c.servicePort(a), c.servicePort(b)), cmp.Compare(a.port, b.port),
			strings.Compare(a.service.name, b.service.name))
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b *offer) int {
		return cmp.Or(same(a, b), cmp.Compare(sooner(a), sooner(b)), cmp.Compare(b.stamp, a.stamp), strings.Compare(a.of, b.of))
	})
	out := all[:0]
	for _, o := range all {
		if n := len(out); n == 0 || same(out[n-1], o) != 0 {
			out = append(out, o)
		} else if out[n-1].byName == o.byName {
			lost(lostSame, o.of)
		}
	}
	return out
}
