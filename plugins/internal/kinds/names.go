package kinds

import "strings"

// Groups of Istio's API.
const (
	networkingGroup = "networking.istio.io"
	securityGroup   = "security.istio.io"
	telemetryGroup  = "telemetry.istio.io"
	extensionsGroup = "extensions.istio.io"
)

// Tables of the kinds, GROUP/KIND.
const (
	DestinationRule = networkingGroup + "/DestinationRule"
	EnvoyFilter     = networkingGroup + "/EnvoyFilter"
	Gateway         = networkingGroup + "/Gateway"
	ProxyConfig     = networkingGroup + "/ProxyConfig"
	ServiceEntry    = networkingGroup + "/ServiceEntry"
	Sidecar         = networkingGroup + "/Sidecar"
	VirtualService  = networkingGroup + "/VirtualService"
	WorkloadEntry   = networkingGroup + "/WorkloadEntry"
	WorkloadGroup   = networkingGroup + "/WorkloadGroup"

	AuthorizationPolicy   = securityGroup + "/AuthorizationPolicy"
	PeerAuthentication    = securityGroup + "/PeerAuthentication"
	RequestAuthentication = securityGroup + "/RequestAuthentication"

	Telemetry = telemetryGroup + "/Telemetry"

	TrafficExtension = extensionsGroup + "/TrafficExtension"
	WasmPlugin       = extensionsGroup + "/WasmPlugin"
)

// Plural is how the definition of a kind calls its objects: virtualservices. Source: Kubernetes,
// CustomResourceDefinition, spec.names.plural.
func Plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(name, "ay"):
		return name + "s"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	case strings.HasSuffix(name, "s"):
		return name + "es"
	}
	return name + "s"
}
