// Package settings holds what `coxswain discovery` can be told: where each setting comes from, its
// default, and what it may be.
//
// A setting has one name everywhere. In a settings file it is a key (debounceAfter: 100ms), in the
// environment it is in capitals with a prefix (COXSWAIN_DEBOUNCE_AFTER), on the command line it is
// a flag (--debounceAfter). Flags win over the environment, and that over the file.
package settings

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
)

// Settings of a control plane.
type Settings struct {
	Inputs    `koanf:",squash"`
	Ports     `koanf:",squash"`
	TLS       `koanf:",squash"`
	Commit    `koanf:",squash"`
	Serving   `koanf:",squash"`
	Clients   `koanf:",squash"`
	Peers     `koanf:",squash"`
	Keepalive Keepalive `koanf:",squash"`
	History   History   `koanf:",squash"`
	Log       `koanf:",squash"`
}

// Inputs are what is read: files, and a Kubernetes API server.
type Inputs struct {
	// Webhooks: there is a port for webhooks (HTTPSAddr), and the set for a cluster answers them.
	Webhooks bool `koanf:"-"`
	// Plugins is a plugins.yaml; empty: the set that is built in.
	Plugins string `koanf:"plugins"`
	// Dev restarts plugins whose programs change.
	Dev bool `koanf:"dev"`
	// ConfigDir, MeshConfig and NetworksConfig are handed to the set's config/file and config/mesh.
	ConfigDir      string `koanf:"configDir"`
	MeshConfig     string `koanf:"meshConfig"`
	NetworksConfig string `koanf:"networksConfig"`
	// TrustCreationTimestamp is handed to the set's config/file: one owner writes all of ConfigDir.
	TrustCreationTimestamp bool `koanf:"trustCreationTimestamp"`
	// ManageGateways enables the set's controller/gateway, which deploys what serves Gateways.
	ManageGateways bool `koanf:"manageGateways"`
	// AutoRegistration enables the set's controller/registration, which makes WorkloadEntries for
	// agents that connect.
	AutoRegistration bool `koanf:"autoRegistration"`
	// DualStack is handed to the set's generator/istio and registry/kubernetes: what has addresses
	// of both families is reached by both.
	DualStack bool `koanf:"dualStack"`
	Cluster   `koanf:",squash"`
	Callers   Callers `koanf:",squash"`
}

// Callers says whose credentials count. istiod's variables for these are read, too: who is let in
// is not to change because a variable has another name here.
type Callers struct {
	// JWTRule is a JWTRule of Istio's API as JSON, for the set's authenticator/jwt; empty: none.
	JWTRule string `koanf:"jwtRule"`
	// TokenAudiences are whom tokens of service accounts are meant for, joined by commas, for the
	// set's authenticator/kubernetes; empty: as its config says.
	TokenAudiences string `koanf:"tokenAudiences"`
	// TrustedGatewayCIDR is where gateways are whose x-forwarded-client-cert counts, joined by
	// commas, for the set's authenticator/xfcc; empty: nowhere.
	TrustedGatewayCIDR string  `koanf:"trustedGatewayCIDR"`
	Signing            Signing `koanf:",squash"`
	// ForeignTrustDomains lets callers come whose trust domain is none of the mesh's.
	ForeignTrustDomains bool `koanf:"foreignTrustDomains"`
}

// Signing is who signs certificates, by istiod's variables, which are read, too.
type Signing struct {
	// CAServer: the set for a cluster signs certificates of workloads.
	CAServer bool `koanf:"enableCAServer"`
	// ExternalCA is who signs in the place of the set's controller/ca; empty: nobody.
	ExternalCA string `koanf:"externalCA"`
	// K8sSigner is a signer of the cluster, SignerDomain that of signers that workloads name.
	K8sSigner    string `koanf:"k8sSigner"`
	SignerDomain string `koanf:"certSignerDomain"`
	// NodeAccounts are service accounts of agents of nodes, NAMESPACE/NAME, joined by commas;
	// empty: there are none.
	NodeAccounts string `koanf:"caTrustedNodeAccounts"`
	// Provider is who makes the secure port's own certificate.
	Provider string `koanf:"pilotCertProvider"`
	// BundleEndpoints are where other trust domains publish their authorities, for the set's
	// config/spiffe; empty: nowhere.
	BundleEndpoints string `koanf:"spiffeBundleEndpoints"`
	// MultiRoot enables the set's config/spiffe, which takes what the mesh's settings say of
	// authorities, too.
	MultiRoot bool `koanf:"multiRootMesh"`
	// ReplaceRoot are SHA-256 of roots of others that the set's controller/ca overwrites, joined by
	// commas; empty: none.
	ReplaceRoot string `koanf:"replaceRoot"`
	// TrustBundle has the set's controller/ca hand the root out in a ClusterTrustBundle.
	TrustBundle bool `koanf:"enableClusterTrustBundleAPI"`
}

// Cluster is the Kubernetes cluster that is read, if one is.
type Cluster struct {
	// Registries is Kubernetes, Consul, Eureka, empty (none), or auto: Kubernetes with a
	// Kubeconfig, and in a pod without a ConfigDir.
	Registries string `koanf:"registries"`
	// ConsulServerURL is where registry/consul of the set asks; empty: as its config says.
	ConsulServerURL string `koanf:"consulserverURL"`
	// EurekaServerURL is the same for registry/eureka.
	EurekaServerURL string `koanf:"eurekaserverURL"`
	// Kubeconfig names the API server and who asks it; empty: what client-go finds.
	Kubeconfig string `koanf:"kubeconfig"`
	// ReadOnly: nothing is written in any cluster, and no controller runs.
	ReadOnly bool `koanf:"readOnly"`
	// Namespace is the control plane's: ConfigMaps and Secrets are read there, and operators, who
	// may ask debug types of everything, are of it. SharedMeshConfig is a ConfigMap beside its own;
	// empty: none.
	Namespace        string  `koanf:"namespace"`
	SharedMeshConfig string  `koanf:"sharedMeshConfig"`
	Remotes          Remotes `koanf:",squash"`
	// ClusterID is the cluster's name in the mesh, Domain the DNS domain of its services.
	ClusterID string `koanf:"clusterID"`
	Domain    string `koanf:"domain"`
	// ClusterAliases are other ids that proxies may say of clusters, ALIAS=CLUSTER joined by
	// commas.
	ClusterAliases string `koanf:"clusterAliases"`
	// Revision is this control plane's.
	Revision string `koanf:"revision"`
	// QPS and Burst limit what each plugin asks of the API server.
	QPS   float64 `koanf:"kubernetesApiQPS"`
	Burst int     `koanf:"kubernetesApiBurst"`
}

// Remotes are other clusters.
type Remotes struct {
	// Namespace has their Secrets; empty: the control plane's.
	Namespace string `koanf:"clusterRegistriesNamespace"`
	// Kubeconfigs is a directory with their kubeconfigs, in place of Secrets; empty: Secrets.
	Kubeconfigs string `koanf:"clusterKubeconfigs"`
	// Timeout is how long the start waits for instances of forEach that rows ask for, such as other
	// clusters.
	Timeout time.Duration `koanf:"remoteClusterTimeout"`
}

// Ports are addresses to listen on, HOST:PORT; empty: not at all.
type Ports struct {
	// IstiodDefaults: addresses that nobody gives are istiod's, on all interfaces, but that of xDS
	// in plain text, which has to be given.
	IstiodDefaults bool   `koanf:"istiodDefaults"`
	GRPCAddr       string `koanf:"grpcAddr"`
	HTTPAddr       string `koanf:"httpAddr"`
	MonitoringAddr string `koanf:"monitoringAddr"`
	SecureGRPCAddr string `koanf:"secureGRPCAddr"`
	// CustomHost are more names of the secure port, joined by commas.
	CustomHost string `koanf:"istiodCustomHost"`
	HTTPSAddr  string `koanf:"httpsAddr"`
	// HTTPSClientCAFile has who may send webhooks.
	HTTPSClientCAFile string `koanf:"httpsClientCAFile"`
	// MonitoringTLS: pages of the monitoring port are for TLS alone, but for those of this machine.
	MonitoringTLS bool `koanf:"monitoringTLS"`
	// UIActions lets those who log in change something from the page.
	UIActions bool `koanf:"uiActions"`
	// AuthPlaintext asks authenticators about connections in plain text, too.
	AuthPlaintext bool `koanf:"authPlaintext"`
}

// TLS of the secure port.
type TLS struct {
	CACertFile string `koanf:"caCertFile"`
	CertFile   string `koanf:"tlsCertFile"`
	KeyFile    string `koanf:"tlsKeyFile"`
	// MinVersion is 1.2 or 1.3.
	MinVersion string `koanf:"tls-min-version"`
	// CipherSuites are IANA's names, separated by commas; empty: Go's choice. TLS 1.3 has its own.
	CipherSuites string `koanf:"tls-cipher-suites"`
}

// Commit is when changes become a revision, and how long one may take.
type Commit struct {
	DebounceAfter     time.Duration `koanf:"debounceAfter"`
	DebounceMax       time.Duration `koanf:"debounceMax"`
	DebounceEndpoints bool          `koanf:"debounceEndpoints"`
	EndpointPatience  time.Duration `koanf:"endpointPatience"`
	EndpointPause     time.Duration `koanf:"endpointPause"`
	HoldMax           time.Duration `koanf:"holdMax"`
	// Quarantine holds what most proxies of a view refuse for all of the view.
	Quarantine bool `koanf:"quarantine"`
	// FollowPushes keeps what pushes are for and whom they reach.
	FollowPushes bool `koanf:"followPushes"`
}

// Serving bounds what proxies get at once. Zero: no bound.
type Serving struct {
	PushThrottle         int           `koanf:"pushThrottle"`
	PushBytes            int64         `koanf:"pushBytes"`
	MaxRequestsPerSecond float64       `koanf:"maxRequestsPerSecond"`
	SendTimeout          time.Duration `koanf:"sendTimeout"`
	ShutdownDuration     time.Duration `koanf:"shutdownDuration"`
	// MemoryLimit is how many bytes the core may use. Zero: what GOMEMLIMIT says, or half of what
	// there is.
	MemoryLimit int64 `koanf:"memoryLimit"`
	// NamespaceBytes is what the objects of one namespace may cost, in bytes. Zero: a quarter of
	// MemoryLimit. Those of UnboundedNamespaces, joined by commas, may cost anything, as those of
	// the control plane's own.
	NamespaceBytes      int64  `koanf:"maxNamespaceBytes"`
	UnboundedNamespaces string `koanf:"unboundedNamespaces"`
	// ViewRetention is how long what proxies get stays made after the last of them left. Zero: not
	// at all.
	ViewRetention      time.Duration `koanf:"viewRetention"`
	ViewRetentionBytes int64         `koanf:"viewRetentionBytes"`
}

// Clients bounds what xDS clients may cost. Zero: no bound.
type Clients struct {
	RequestBytes      int           `koanf:"maxRequestBytes"`
	HeaderBytes       int           `koanf:"maxHeaderBytes"`
	NodeBytes         int           `koanf:"maxNodeBytes"`
	Extensions        int           `koanf:"maxExtensions"`
	ExtensionBytes    int           `koanf:"maxExtensionBytes"`
	NameBytes         int           `koanf:"maxNameBytes"`
	NamesPerType      int           `koanf:"maxNamesPerType"`
	NamesPerStream    int           `koanf:"maxNamesPerStream"`
	UnknownNames      int           `koanf:"maxUnknownNames"`
	Types             int           `koanf:"maxTypes"`
	BytesPerStream    int           `koanf:"maxBytesPerStream"`
	ErrorBytes        int           `koanf:"maxErrorBytes"`
	QueuedBytes       int           `koanf:"maxQueuedBytes"`
	Questions         int           `koanf:"maxQuestions"`
	RequestsPerSecond float64       `koanf:"maxRequestsPerStream"`
	IdleTimeout       time.Duration `koanf:"idleTimeout"`
	Connections       int           `koanf:"maxConnections"`
	StreamsPerConn    int           `koanf:"maxStreamsPerConnection"`
	UnfinishedBytes   int           `koanf:"maxUnfinishedBytes"`
}

// Peers bounds what the clients of one peer may cost together. Zero: no bound.
type Peers struct {
	Connections     int     `koanf:"maxConnectionsPerPeer"`
	Streams         int     `koanf:"maxStreamsPerPeer"`
	NewStreams      float64 `koanf:"maxNewStreamsPerPeer"`
	Requests        float64 `koanf:"maxRequestsPerPeer"`
	Names           int     `koanf:"maxNamesPerPeer"`
	UnknownNames    int     `koanf:"maxUnknownNamesPerPeer"`
	Bytes           int     `koanf:"maxBytesPerPeer"`
	UnfinishedBytes int     `koanf:"maxUnfinishedBytesPerPeer"`
}

// Keepalive of xDS connections. A MaxAge of zero: no end.
type Keepalive struct {
	Interval    time.Duration `koanf:"keepaliveInterval"`
	Timeout     time.Duration `koanf:"keepaliveTimeout"`
	MaxAge      time.Duration `koanf:"keepaliveMaxServerConnectionAge"`
	MaxAgeGrace time.Duration `koanf:"keepaliveMaxServerConnectionAgeGrace"`
}

// History is what is kept of what proxies were served.
type History struct {
	// StateDir is a directory for what outlives a restart; empty: nothing does.
	StateDir string `koanf:"stateDir"`
	// Revisions is how many are kept at most (zero: none), Bytes how much what is not served any
	// more may take.
	Revisions int   `koanf:"historyRevisions"`
	Bytes     int64 `koanf:"historyBytes"`
	// Rollout is of what is served until what is new reaches all.
	Rollout Rollout `koanf:",squash"`
}

// Rollout is which proxies try what people change before all others get it.
type Rollout struct {
	// First selects them; empty: all get it at once. Hold is how long they are watched.
	First string        `koanf:"rolloutFirst"`
	Hold  time.Duration `koanf:"rolloutHold"`
	// MetricURL is a Prometheus server, MetricQuery what it is asked every MetricInterval, and
	// MetricMost how high the answer may be; without a query none is.
	MetricURL      string        `koanf:"rolloutMetricURL"`
	MetricQuery    string        `koanf:"rolloutMetricQuery"`
	MetricMost     float64       `koanf:"rolloutMetricMost"`
	MetricInterval time.Duration `koanf:"rolloutMetricInterval"`
}

// Log is what is logged, and how.
type Log struct {
	Level  string `koanf:"logLevel"`
	Format string `koanf:"logFormat"`
	// AuditLog is a file that keeps who changed what of the plugins; empty: none.
	AuditLog string `koanf:"auditLog"`
	// TraceEndpoint is the URL of a collector of OpenTelemetry; empty: pushes are not traced.
	// TraceRatio of them are, 0 to 1.
	TraceEndpoint string  `koanf:"traceEndpoint"`
	TraceRatio    float64 `koanf:"traceRatio"`
}

// Defaults returns pilot-discovery's defaults, but for addresses, which are of this machine alone.
func Defaults() Settings {
	return Settings{
		Inputs: Inputs{Cluster: Cluster{Registries: "auto", Namespace: "istio-system", ClusterID: "Kubernetes", Domain: "cluster.local", QPS: 80, Burst: 160, Remotes: Remotes{Timeout: 30 * time.Second}}, Callers: Callers{Signing: Signing{CAServer: true, Provider: ProviderIstiod}}},
		Ports: Ports{
			GRPCAddr:       "127.0.0.1:15010",
			SecureGRPCAddr: "127.0.0.1:15012",
			HTTPAddr:       "127.0.0.1:8080",
			MonitoringAddr: "127.0.0.1:15014",
		},
		TLS: TLS{MinVersion: "1.2"},
		Commit: Commit{
			DebounceAfter:    100 * time.Millisecond,
			DebounceMax:      10 * time.Second,
			EndpointPatience: 200 * time.Millisecond,
			EndpointPause:    4 * time.Millisecond,
			HoldMax:          10 * time.Second,
			Quarantine:       true,
			FollowPushes:     true,
		},
		Serving: Serving{
			ViewRetention:        time.Minute,
			ViewRetentionBytes:   256 << 20,
			PushBytes:            16 << 20,
			MaxRequestsPerSecond: budget.Defaults().Total.NewStreams,
			SendTimeout:          time.Minute,
			ShutdownDuration:     10 * time.Second,
		},
		Clients: clients(budget.Defaults()),
		Peers:   peers(budget.Defaults().Peer),
		Keepalive: Keepalive{
			Interval:    30 * time.Second,
			Timeout:     10 * time.Second,
			MaxAgeGrace: 10 * time.Second,
		},
		History: History{Revisions: 100, Bytes: 32 << 20, Rollout: Rollout{Hold: 5 * time.Minute, MetricInterval: 15 * time.Second}},
		Log:     Log{Level: "info", Format: "text", TraceRatio: 1},
	}
}
