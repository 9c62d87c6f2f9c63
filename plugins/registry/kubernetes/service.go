package kubernetes

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Annotations of Services.
const (
	exportTo            = "networking.istio.io/exportTo"
	trafficDistribution = "networking.istio.io/traffic-distribution"
	canonicalAccounts   = "alpha.istio.io/canonical-serviceaccounts"
	moreAccounts        = "alpha.istio.io/kubernetes-serviceaccounts"
	onNodesOf           = "traffic.istio.io/nodeSelector"
)

// hostOf is the full name of a service.
func (c *Config) hostOf(namespace, name string) string {
	return name + "." + namespace + ".svc." + c.Domain
}

// service makes the row of a Service that has endpoints. Its namespace may not be known (nil);
// aliases are the names of ExternalName services that stand for it.
func (c *Config) service(s *corev1.Service, in *corev1.Namespace, aliases []string) *pb.Service {
	out := &pb.Service{
		Host: c.hostOf(s.Namespace, s.Name), Namespace: s.Namespace, Name: s.Name, Registry: "Kubernetes", Cluster: c.Cluster,
		ExportTo: list(s.Annotations[exportTo]), Labels: s.Labels, Selector: s.Spec.Selector, Aliases: aliases,
		SubjectAltNames: list(s.Annotations[canonicalAccounts]), ServiceAccounts: list(s.Annotations[moreAccounts]),
		NodeLocal:       s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
		PublishNotReady: s.Spec.PublishNotReadyAddresses, TrafficDistribution: distribution(s, in),
	}
	if s.Spec.ClusterIP == corev1.ClusterIPNone {
		out.Headless, out.Resolution = true, pb.ServiceResolutionNone
	} else {
		out.Addresses = s.Spec.ClusterIPs
		if len(out.Addresses) == 0 && s.Spec.ClusterIP != "" {
			out.Addresses = []string{s.Spec.ClusterIP}
		}
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		port := &pb.Port{Number: uint32(p.Port), Name: p.Name, Protocol: protocolOf(p)}
		if n := p.TargetPort.IntValue(); n > 0 && n != int(p.Port) {
			port.Target = uint32(n)
		}
		if p.TargetPort.Type == intstr.String && port.Target == 0 {
			port.TargetName = p.TargetPort.StrVal
		}
		out.Ports = append(out.Ports, port)
	}
	if outside := external(s); len(outside) > 0 {
		out.ExternalAddresses = map[string]string{c.Cluster: strings.Join(outside, ",")}
	} else {
		out.AwaitsAddress = s.Spec.Type == corev1.ServiceTypeLoadBalancer
	}
	return out
}

// distribution is where traffic stays: what the field says, otherwise the annotation of the
// service, otherwise that of its namespace.
func distribution(s *corev1.Service, in *corev1.Namespace) string {
	if s.Spec.TrafficDistribution != nil {
		return *s.Spec.TrafficDistribution
	}
	if word := s.Annotations[trafficDistribution]; word != "" || in == nil {
		return word
	}
	return in.Annotations[trafficDistribution]
}

// external are the addresses by which a Service is reached from outside.
func external(s *corev1.Service) []string {
	out := slices.Clone(s.Spec.ExternalIPs)
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, in := range s.Status.LoadBalancer.Ingress {
			if in.IP != "" {
				out = append(out, in.IP)
			} else if in.Hostname != "" {
				out = append(out, in.Hostname)
			}
		}
	}
	return out
}

// nodeSelector is by which labels a Service of type NodePort says on which nodes it is reached from
// outside, as the gateway of a network; ok: it says.
func nodeSelector(s *corev1.Service) (selector map[string]string, ok bool) {
	text, ok := s.Annotations[onNodesOf]
	if !ok || s.Spec.Type != corev1.ServiceTypeNodePort || json.Unmarshal([]byte(text), &selector) != nil {
		return nil, false
	}
	return selector, true
}

// onNodes adds to the row of a Service that it is reached at the external addresses of nodes with
// some labels, at its node ports.
func (c *Config) onNodes(out *pb.Service, s *corev1.Service, nodes []*corev1.Node, selector map[string]string) {
	var at []string
	for _, n := range nodes {
		if !labels.SelectorFromSet(selector).Matches(labels.Set(n.Labels)) {
			continue
		}
		for _, a := range n.Status.Addresses {
			at = append(at, a.Address) // lean has left those that are external
		}
	}
	if len(at) == 0 {
		return
	}
	slices.Sort(at)
	out.ExternalAddresses, out.ExternalPorts = map[string]string{c.Cluster: strings.Join(at, ",")}, map[string]uint32{}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			out.ExternalPorts[c.Cluster+"/"+strconv.Itoa(int(p.Port))] = uint32(p.NodePort)
		}
	}
}

// list splits an annotation at its commas.
func list(text string) (out []string) {
	for each := range strings.SplitSeq(text, ",") {
		if each = strings.TrimSpace(each); each != "" {
			out = append(out, each)
		}
	}
	return out
}
