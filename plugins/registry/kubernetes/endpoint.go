package kubernetes

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// members are what endpoints of a service are made of.
type members struct {
	service *corev1.Service
	slices  []*discoveryv1.EndpointSlice
	// pod and node return nil for what isn't there (yet).
	pod  func(namespace, name string) *pod
	node func(name string) *corev1.Node
}

// endpoints makes a service's endpoints, in the order of its slices' names; what a slice says again
// of an address counts no more. One that stands for a pod waits until the pod is known: nobody
// could say otherwise whose it is and whether it speaks mutual TLS. unknown are the pods that are
// not.
func (c *Config) endpoints(m *members) (out []*pb.Endpoint, unknown int) {
	slices.SortFunc(m.slices, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	index, known := uint32(0), map[string]bool{}
	for _, s := range m.slices {
		if s.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			pod, named := m.podOf(s, e)
			if named && pod == nil {
				unknown++
				continue
			}
			if named && pod.failed {
				continue
			}
			for _, address := range e.Addresses {
				for _, p := range s.Ports {
					row := c.endpoint(m, e, pod, address, p)
					if row == nil || known[row.PortName+" "+row.Address] {
						continue
					}
					known[row.PortName+" "+row.Address] = true
					row.Index = index
					out = append(out, row)
				}
				index++
			}
		}
	}
	return out, unknown
}

// podOf is the pod that an endpoint stands for; nil: it isn't known. named reports whether it
// stands for one.
func (m *members) podOf(s *discoveryv1.EndpointSlice, e *discoveryv1.Endpoint) (of *pod, named bool) {
	if e.TargetRef == nil || e.TargetRef.Kind != "Pod" {
		return nil, false
	}
	return m.pod(cmp.Or(e.TargetRef.Namespace, s.Namespace), e.TargetRef.Name), true
}

func (c *Config) endpoint(m *members, e *discoveryv1.Endpoint, of *pod, address string, p discoveryv1.EndpointPort) *pb.Endpoint {
	if p.Port == nil {
		return nil
	}
	name := ""
	if p.Name != nil {
		name = *p.Name
	}
	at := slices.IndexFunc(m.service.Spec.Ports, func(port corev1.ServicePort) bool { return port.Name == name })
	if at < 0 {
		return nil
	}
	out := &pb.Endpoint{
		Host: c.hostOf(m.service.Namespace, m.service.Name), Namespace: m.service.Namespace,
		PortName: name, ServicePort: uint32(m.service.Spec.Ports[at].Port), Address: address, Port: uint32(*p.Port),
		Cluster: c.Cluster, Health: health(m.service, e.Conditions), TlsMode: hosts.TLSModeDisabled,
	}
	if of == nil {
		return out // whatever a slice says of where it runs
	}
	if out.Hostname, out.Subdomain = of.hostname, of.subdomain; out.Subdomain != "" { // whatever the slice says, as istiod
		out.Hostname = cmp.Or(out.Hostname, of.Name)
	}
	out.Node = of.node
	out.Labels, out.ServiceAccount, out.Workload = of.Labels, of.account, of.workload
	out.Network, out.Locality = hosts.Network("", of.Labels), locality(of, m.node(out.Node))
	out.TlsMode = hosts.TLSMode(of.Labels, "")
	if of.Namespace != m.service.Namespace {
		out.WorkloadNamespace = of.Namespace
	}
	if c.DualStack && len(m.service.Spec.IPFamilies) > 1 && len(of.addresses) > 1 { // of either family's slice the same endpoint comes
		out.Address, out.MoreAddresses = of.addresses[0], of.addresses[1:]
	}
	return out
}

// health is whether an endpoint takes requests. One whose state is unknown is ready.
// Source: Kubernetes, EndpointSlice, "Conditions".
func health(s *corev1.Service, c discoveryv1.EndpointConditions) pb.EndpointHealth {
	is := func(b *bool, otherwise bool) bool {
		if b == nil {
			return otherwise
		}
		return *b
	}
	switch {
	case is(c.Ready, true) || s.Spec.PublishNotReadyAddresses && !is(c.Terminating, false):
		return pb.EndpointHealthReady
	case is(c.Terminating, false) && is(c.Serving, false):
		return pb.EndpointHealthDraining
	case is(c.Terminating, true): // so it is taken for where nothing is said
		return pb.EndpointHealthTerminating
	}
	return pb.EndpointHealthUnhealthy
}
