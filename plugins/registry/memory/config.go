package memory

// Config is the entry's `config` in plugins.yaml. Fields that a ServiceEntry has too mean the same.
type Config struct {
	// Cluster that the endpoints are said to be in; `Kubernetes` if absent.
	Cluster  string    `json:"cluster" doc:"The cluster that the endpoints are said to be in."`
	Services []service `json:"services"`
}

type service struct {
	Host string `json:"host" required:"true"`
	// Namespace is `default` if absent, Name the host.
	Namespace string   `json:"namespace" doc:"default if absent."`
	Name      string   `json:"name"`
	Addresses []string `json:"addresses" doc:"Virtual addresses: IPs or CIDRs."`
	Ports     []port   `json:"ports" required:"true"`
	// Resolution is STATIC if absent; with DNS and no endpoints the host itself is resolved.
	Resolution      string            `json:"resolution" enum:"STATIC,DNS,DNS_ROUND_ROBIN,NONE" doc:"STATIC if absent."`
	External        bool              `json:"external" doc:"Outside of the mesh: no mutual TLS."`
	ExportTo        []string          `json:"exportTo"`
	SubjectAltNames []string          `json:"subjectAltNames"`
	Labels          map[string]string `json:"labels"`
	Endpoints       []endpoint        `json:"endpoints"`
}

type port struct {
	Number uint32 `json:"number" required:"true" min:"1" max:"65535"`
	// Name is the protocol and the number if absent: http-8080.
	Name       string `json:"name"`
	Protocol   string `json:"protocol" doc:"HTTP, HTTPS, HTTP2, GRPC, TCP, TLS, …; sniffed if absent."`
	TargetPort uint32 `json:"targetPort" max:"65535"`
}

type endpoint struct {
	Address string `json:"address" required:"true" doc:"IP address, DNS name (resolution DNS), or unix:PATH."`
	// Port is for services of one port; Ports have the others by the service port's name. Without
	// either it is the target port.
	Port           uint32            `json:"port" max:"65535"`
	Ports          map[string]uint32 `json:"ports"`
	Labels         map[string]string `json:"labels"`
	Locality       string            `json:"locality" doc:"region/zone/subzone"`
	Network        string            `json:"network"`
	Weight         uint32            `json:"weight"`
	ServiceAccount string            `json:"serviceAccount"`
	// Workload is its name for telemetry.
	Workload string `json:"workload"`
}
