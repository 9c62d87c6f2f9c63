package kinds

// Groups of Istio's API.
const (
	Networking = "networking.istio.io"
	Security   = "security.istio.io"
	Telemetries = "telemetry.istio.io"
	Extensions = "extensions.istio.io"
)

// Tables of the kinds, GROUP/KIND.
const (
	DestinationRule = Networking + "/DestinationRule"
	EnvoyFilter     = Networking + "/EnvoyFilter"
	Gateway         = Networking + "/Gateway"
	ProxyConfig     = Networking + "/ProxyConfig"
	ServiceEntry    = Networking + "/ServiceEntry"
	Sidecar         = Networking + "/Sidecar"
	VirtualService  = Networking + "/VirtualService"
	WorkloadEntry   = Networking + "/WorkloadEntry"
	WorkloadGroup   = Networking + "/WorkloadGroup"

	AuthorizationPolicy   = Security + "/AuthorizationPolicy"
	PeerAuthentication    = Security + "/PeerAuthentication"
	RequestAuthentication = Security + "/RequestAuthentication"

	Telemetry = Telemetries + "/Telemetry"

	TrafficExtension = Extensions + "/TrafficExtension"
	WasmPlugin       = Extensions + "/WasmPlugin"
)
