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

// protocolOf returns the protocol of a service's port as pb.Port has it: by its appProtocol, the first word of its name, or its number.
// Source: Istio, "Protocol selection".
func protocolOf(p *corev1.ServicePort) string {
	if p.Protocol == corev1.ProtocolUDP {
		return "UDP"
	}
	if a := p.AppProtocol; a != nil {
		if known := applications[strings.ToLower(*a)]; known != "" {
			return known
		}
		if known := hosts.Protocol(*a); known != "" {
			return known
		}
	}
	name := strings.ToLower(p.Name)
	if name == "grpc-web" || strings.HasPrefix(name, "grpc-web-") {
		return "GRPC-WEB"
	}
	word, _, _ := strings.Cut(name, "-")
	if known := hosts.Protocol(word); known != "" && known != "UDP" {
		return known
	}
	return spoken[p.Port]
}
