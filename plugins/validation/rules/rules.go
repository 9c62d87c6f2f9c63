// Package rules checks what the fields of one resource mean, beyond what schemas can say: what
// istiod's webhook refuses or warns of, and what no proxy could be configured with.
//
// A kind's rules are functions of its message and nothing else, in a file named after the kind;
// what kinds share is in files named after the thing (hosts, ports, durations, …). The codes are in
// codes/, one file each.
package rules

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	extensions "istio.io/api/extensions/v1alpha1"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"
)

// Check returns what is wrong with a resource's spec. Kinds without rules have nothing wrong.
func Check(r finding.Resource) []finding.Finding {
	c := &checker{Resource: r}
	const spec = path("spec")
	switch m := r.Spec.(type) {
	case *networking.VirtualService:
		c.virtualService(spec, m)
	case *networking.Gateway:
		c.gateway(spec, m)
	case *networking.DestinationRule:
		c.destinationRule(spec, m)
	case *networking.ServiceEntry:
		c.serviceEntry(spec, m)
	case *networking.WorkloadEntry:
		c.workloadEntry(spec, m)
	case *networking.WorkloadGroup:
		c.workloadGroup(spec, m)
	case *networking.Sidecar:
		c.sidecar(spec, m)
	case *networking.EnvoyFilter:
		c.envoyFilter(spec, m)
	case *security.AuthorizationPolicy:
		c.authorizationPolicy(spec, m)
	case *security.RequestAuthentication:
		c.requestAuthentication(spec, m)
	case *security.PeerAuthentication:
		c.selection(spec, m.Selector, nil, nil)
	case *telemetry.Telemetry:
		c.telemetry(spec, m)
	case *extensions.WasmPlugin:
		c.selection(spec, m.Selector, m.TargetRef, m.TargetRefs)
	case *extensions.TrafficExtension:
		c.selection(spec, m.Selector, nil, m.TargetRefs)
	case *mesh.ProxyConfig:
		c.proxyConfig("", m)
	case *mesh.MeshConfig:
		c.meshConfig(m)
	case *mesh.MeshNetworks:
		c.meshNetworks(m)
	}
	return c.found
}

// checker gathers what is found in one resource.
type checker struct {
	finding.Resource
	found []finding.Finding
}

// fail notes an error, warn what is served and probably not meant. What they return takes a hint.
func (c *checker) fail(code string, at path, format string, args ...any) *note {
	c.found = append(c.found, finding.Errorf(code, string(at), format, args...))
	return (*note)(&c.found[len(c.found)-1])
}

func (c *checker) warn(code string, at path, format string, args ...any) *note {
	c.found = append(c.found, finding.Warnf(code, string(at), format, args...))
	return (*note)(&c.found[len(c.found)-1])
}

// note is a finding that was just made.
type note finding.Finding

func (n *note) hint(format string, args ...any) { n.Hint = fmt.Sprintf(format, args...) }
