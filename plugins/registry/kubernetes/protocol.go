package kubernetes

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
)

// applications are values of appProtocol that are no names of Istio's.
// Source: Kubernetes, Service, "Application protocol".
var applications = map[string]string{"kubernetes.io/h2c": "HTTP2", "kubernetes.io/ws": "HTTP", "kubernetes.io/wss": "HTTPS"}

// spoken are ports whose protocol has the server speak first, so that it can't be sniffed.
// Source: Istio, "Protocol selection", server first protocols.
var spoken = map[int32]string{25: "TCP", 53: "TCP", 3306: "TCP", 27017: "TCP"}

// protocolOf returns the protocol of a service's port as pb.Port has it: by the first word of its
// appProtocol or, where it has none, of its name; by its number where that word means nothing.
// Source: Istio, "Protocol selection".
func protocolOf(p *corev1.ServicePort) string {
	if p.Protocol == corev1.ProtocolUDP {
		return "UDP"
	}
	name := p.Name
	if p.AppProtocol != nil {
		name = *p.AppProtocol
		if known := applications[name]; known != "" {
			return known
		}
	}
	if name = strings.ToLower(name); strings.HasPrefix(name, "grpc-web") {
		return "GRPC-WEB"
	}
	word, _, _ := strings.Cut(name, "-")
	if known := hosts.Protocol(word); known != "" {
		return known
	}
	return spoken[p.Port]
}
