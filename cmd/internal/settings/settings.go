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
	"github.com/coxswain-mesh/coxswain/core/revision"
)

// Settings of a control plane.
type Settings struct {
	Inputs    `setting:",squash"`
	Ports     `setting:",squash"`
	TLS       `setting:",squash"`
	Commit    `setting:",squash"`
	Serving   `setting:",squash"`
	Limits    budget.Limits `setting:",squash"`
	Keepalive Keepalive     `setting:",squash"`
	History   History       `setting:",squash"`
	Log       `setting:",squash"`
}

// Inputs are what is read: files, and a Kubernetes API server.
type Inputs struct {
	// Webhooks: there is a port for webhooks (HTTPSAddr), and the set for a cluster answers them;
	// not with ReadOnly, which has no controller that could.
	Webhooks bool `setting:"-"`
	// Plugins is a plugins.yaml; empty: the set that is built in.
	Plugins string `setting:"plugins"`
	// Dev restarts plugins whose programs change.
	Dev bool `setting:"dev"`
	// ConfigDir, MeshConfig and NetworksConfig are handed to the set's config/file and config/mesh.
	ConfigDir      string `setting:"configDir"`
	MeshConfig     string `setting:"meshConfig"`
	NetworksConfig string `setting:"networksConfig"`
	// TrustCreationTimestamp is handed to the set's config/file: one owner writes all of ConfigDir.
	TrustCreationTimestamp bool `setting:"trustCreationTimestamp"`
	// ManageGateways enables the set's controller/gateway, which deploys what serves Gateways.
	ManageGateways bool `setting:"manageGateways"`
	// AutoRegistration enables the set's controller/registration, which makes WorkloadEntries for
	// agents that connect.
	AutoRegistration bool `setting:"autoRegistration"`
	// Analysis enables the set's controller/analysis, which writes findings into statuses.
	Analysis bool    `setting:"enableAnalysis"`
	Untaint  Untaint `setting:",squash"`
	// DNSAddr is where the set's controller/dns answers, and enables it; empty: it is off.
	DNSAddr string `setting:"dnsAddr"`
	// DualStack is handed to the set's generator/istio and registry/kubernetes: what has addresses
	// of both families is reached by both.
	DualStack bool    `setting:"dualStack"`
	Modules   Modules `setting:",squash"`
	Cluster   `setting:",squash"`
	Callers   Callers `setting:",squash"`
}

// Untaint is how the set's controller/untaint takes a taint from nodes where the CNI plugin is
// ready.
type Untaint struct {
	// Nodes enables it.
	Nodes bool `setting:"untaintNodes"`
	// Taint is the taint's key; empty: as its config says.
	Taint string `setting:"nodeTaint"`
	// CNINamespace is where the CNI plugin's pods are; empty: in the control plane's.
	CNINamespace string `setting:"cniNamespace"`
}

// Modules is how the set's config/modules fetches modules of WebAssembly, for Envoys without an
// agent.
type Modules struct {
	// Dir is where they are kept, and enables it; empty: none are fetched.
	Dir string `setting:"modulesDir"`
	// Blocked are addresses that are never asked for one, joined by commas.
	Blocked string `setting:"modulesBlocked"`
}

// BlockedCIDRs returns the list of Blocked.
func (m Modules) BlockedCIDRs() []string { return list(m.Blocked) }

// Callers says whose credentials count. istiod's variables for these are read, too: who is let in
// is not to change because a variable has another name here.
type Callers struct {
	// JWTRule is a JWTRule of Istio's API as JSON, for the set's authenticator/jwt; empty: none.
	JWTRule string `setting:"jwtRule"`
	// TokenAudiences are whom tokens of service accounts are meant for, joined by commas, for the
	// set's authenticator/kubernetes; empty: as its config says.
	TokenAudiences string `setting:"tokenAudiences"`
	// TrustedGatewayCIDR is where gateways are whose x-forwarded-client-cert counts, joined by
	// commas, for the set's authenticator/xfcc; empty: nowhere.
	TrustedGatewayCIDR string  `setting:"trustedGatewayCIDR"`
	Signing            Signing `setting:",squash"`
	// ForeignTrustDomains lets callers come whose trust domain is none of the mesh's.
	ForeignTrustDomains bool `setting:"foreignTrustDomains"`
}

// Signing is who signs certificates, by istiod's variables, which are read, too.
type Signing struct {
	// CAServer: the set for a cluster signs certificates of workloads.
	CAServer bool `setting:"enableCAServer"`
	// ExternalCA is who signs in the place of the set's controller/ca; empty: nobody.
	ExternalCA string `setting:"externalCA"`
	// K8sSigner is a signer of the cluster, SignerDomain that of signers that workloads name.
	K8sSigner    string `setting:"k8sSigner"`
	SignerDomain string `setting:"certSignerDomain"`
	// NodeAccounts are service accounts of agents of nodes, NAMESPACE/NAME, joined by commas;
	// empty: there are none.
	NodeAccounts string `setting:"caTrustedNodeAccounts"`
	// Provider is who makes the secure port's own certificate.
	Provider string `setting:"pilotCertProvider"`
	// BundleEndpoints are where other trust domains publish their authorities, for the set's
	// config/spiffe; empty: nowhere.
	BundleEndpoints string `setting:"spiffeBundleEndpoints"`
	// MultiRoot enables the set's config/spiffe, which takes what the mesh's settings say of
	// authorities, too.
	MultiRoot bool `setting:"multiRootMesh"`
	// ReplaceRoot are SHA-256 of roots of others that the set's controller/ca overwrites, joined by
	// commas; empty: none.
	ReplaceRoot string `setting:"replaceRoot"`
	// TrustBundle has the set's controller/ca hand the root out in a ClusterTrustBundle.
	TrustBundle bool `setting:"enableClusterTrustBundleAPI"`
}

// Cluster is the Kubernetes cluster that is read, if one is.
type Cluster struct {
	// Registries is Kubernetes, Consul, Eureka, empty (none), or auto: Kubernetes with a
	// Kubeconfig, and in a pod without a ConfigDir.
	Registries string `setting:"registries"`
	// ConsulServerURL is where registry/consul of the set asks; empty: as its config says.
	ConsulServerURL string `setting:"consulserverURL"`
	// EurekaServerURL is the same for registry/eureka.
	EurekaServerURL string `setting:"eurekaserverURL"`
	// Kubeconfig names the API server and who asks it; empty: what client-go finds.
	Kubeconfig string `setting:"kubeconfig"`
	// ReadOnly: nothing is written in any cluster, and no controller runs.
	ReadOnly bool `setting:"readOnly"`
	// Namespace is the control plane's: ConfigMaps and Secrets are read there, and operators, who
	// may ask debug types of everything, are of it. SharedMeshConfig is a ConfigMap beside its own;
	// empty: none.
	Namespace        string  `setting:"namespace"`
	SharedMeshConfig string  `setting:"sharedMeshConfig"`
	Remotes          Remotes `setting:",squash"`
	// ClusterID is the cluster's name in the mesh, Domain the DNS domain of its services.
	ClusterID string `setting:"clusterID"`
	Domain    string `setting:"domain"`
	// ClusterAliases are other ids that proxies may say of clusters, ALIAS=CLUSTER joined by
	// commas.
	ClusterAliases string `setting:"clusterAliases"`
	// Revision is this control plane's.
	Revision string `setting:"revision"`
	// QPS and Burst limit what each plugin asks of the API server.
	QPS   float64 `setting:"kubernetesApiQPS"`
	Burst int     `setting:"kubernetesApiBurst"`
}

// Remotes are other clusters.
type Remotes struct {
	// Namespace has their Secrets; empty: the control plane's.
	Namespace string `setting:"clusterRegistriesNamespace"`
	// Kubeconfigs is a directory with their kubeconfigs, in place of Secrets; empty: Secrets.
	Kubeconfigs string `setting:"clusterKubeconfigs"`
	// Timeout is how long the start waits for instances of forEach that rows ask for, such as other
	// clusters.
	Timeout time.Duration `setting:"remoteClusterTimeout"`
}

// Ports are addresses to listen on, HOST:PORT; empty: not at all.
type Ports struct {
	// IstiodDefaults: addresses that nobody gives are istiod's, on all interfaces, but that of xDS
	// in plain text, which has to be given.
	IstiodDefaults bool   `setting:"istiodDefaults"`
	GRPCAddr       string `setting:"grpcAddr"`
	HTTPAddr       string `setting:"httpAddr"`
	MonitoringAddr string `setting:"monitoringAddr"`
	SecureGRPCAddr string `setting:"secureGRPCAddr"`
	// CustomHost are more names of the secure port, joined by commas.
	CustomHost string `setting:"istiodCustomHost"`
	HTTPSAddr  string `setting:"httpsAddr"`
	// HTTPSClientCAFile has who may send webhooks.
	HTTPSClientCAFile string `setting:"httpsClientCAFile"`
	// MonitoringTLS: pages of the monitoring port are for TLS alone, but for those of this machine.
	MonitoringTLS bool `setting:"monitoringTLS"`
	// UIActions lets those who log in change something from the page.
	UIActions bool `setting:"uiActions"`
	// AuthPlaintext asks authenticators about connections in plain text, too.
	AuthPlaintext bool `setting:"authPlaintext"`
}

// TLS of the secure port.
type TLS struct {
	CACertFile string `setting:"caCertFile"`
	CertFile   string `setting:"tlsCertFile"`
	KeyFile    string `setting:"tlsKeyFile"`
	// MinVersion is 1.2 or 1.3.
	MinVersion string `setting:"tls-min-version"`
	// CipherSuites are IANA's names, separated by commas; empty: Go's choice. TLS 1.3 has its own.
	CipherSuites string `setting:"tls-cipher-suites"`
}

// Commit is when changes become a revision, and what is kept of that.
type Commit struct {
	revision.Timing `setting:",squash"`
	// Quarantine holds what most proxies of a view refuse for all of the view.
	Quarantine bool `setting:"quarantine"`
	// FollowPushes keeps what pushes are for and whom they reach.
	FollowPushes bool `setting:"followPushes"`
}

// Serving bounds what proxies get at once. Zero: no bound.
type Serving struct {
	PushThrottle     int           `setting:"pushThrottle"`
	PushBytes        int64         `setting:"pushBytes"`
	SendTimeout      time.Duration `setting:"sendTimeout"`
	ShutdownDuration time.Duration `setting:"shutdownDuration"`
	// MemoryLimit is how many bytes the core may use. Zero: what GOMEMLIMIT says, or half of what
	// there is.
	MemoryLimit int64 `setting:"memoryLimit"`
	// NamespaceBytes is what the objects of one namespace may cost, in bytes. Zero: a quarter of
	// MemoryLimit. Those of UnboundedNamespaces, joined by commas, may cost anything, as those of
	// the control plane's own.
	NamespaceBytes      int64  `setting:"maxNamespaceBytes"`
	UnboundedNamespaces string `setting:"unboundedNamespaces"`
	// ViewRetention is how long what proxies get stays made after the last of them left. Zero: not
	// at all.
	ViewRetention      time.Duration `setting:"viewRetention"`
	ViewRetentionBytes int64         `setting:"viewRetentionBytes"`
}

// Keepalive of xDS connections. A MaxAge of zero: no end.
type Keepalive struct {
	Interval    time.Duration `setting:"keepaliveInterval"`
	Timeout     time.Duration `setting:"keepaliveTimeout"`
	MaxAge      time.Duration `setting:"keepaliveMaxServerConnectionAge"`
	MaxAgeGrace time.Duration `setting:"keepaliveMaxServerConnectionAgeGrace"`
}

// History is what is kept of what proxies were served.
type History struct {
	// StateDir is a directory for what outlives a restart; empty: nothing does.
	StateDir string `setting:"stateDir"`
	// Revisions is how many are kept at most (zero: none), Bytes how much what is not served any
	// more may take.
	Revisions int   `setting:"historyRevisions"`
	Bytes     int64 `setting:"historyBytes"`
	// Rollout is of what is served until what is new reaches all.
	Rollout Rollout `setting:",squash"`
}

// Rollout is which proxies try what people change before all others get it.
type Rollout struct {
	// First selects them; empty: all get it at once. Hold is how long they are watched.
	First string        `setting:"rolloutFirst"`
	Hold  time.Duration `setting:"rolloutHold"`
	// MetricURL is a Prometheus server, MetricQuery what it is asked every MetricInterval, and
	// MetricMost how high the answer may be; without a query none is.
	MetricURL      string        `setting:"rolloutMetricURL"`
	MetricQuery    string        `setting:"rolloutMetricQuery"`
	MetricMost     float64       `setting:"rolloutMetricMost"`
	MetricInterval time.Duration `setting:"rolloutMetricInterval"`
}

// Log is what is logged, and how.
type Log struct {
	Level  string `setting:"logLevel"`
	Format string `setting:"logFormat"`
	// AuditLog is a file that keeps who changed what of the plugins; empty: none.
	AuditLog string `setting:"auditLog"`
	// TraceEndpoint is the URL of a collector of OpenTelemetry; empty: pushes are not traced.
	// TraceRatio of them are, 0 to 1.
	TraceEndpoint string  `setting:"traceEndpoint"`
	TraceRatio    float64 `setting:"traceRatio"`
}

// Defaults returns pilot-discovery's defaults, but for addresses, which are of this machine alone.
func Defaults() Settings {
	return Settings{
		Inputs: Inputs{
			Cluster: Cluster{
				Registries: "auto", Namespace: "istio-system", ClusterID: "Kubernetes", Domain: "cluster.local",
				QPS: 80, Burst: 160, Remotes: Remotes{Timeout: 30 * time.Second},
			},
			Callers: Callers{Signing: Signing{CAServer: true, Provider: ProviderIstiod}},
		},
		Ports: Ports{
			GRPCAddr:       "127.0.0.1:15010",
			SecureGRPCAddr: "127.0.0.1:15012",
			HTTPAddr:       "127.0.0.1:8080",
			MonitoringAddr: "127.0.0.1:15014",
		},
		TLS: TLS{MinVersion: "1.2"},
		Commit: Commit{
			Timing:       revision.Timings(),
			Quarantine:   true,
			FollowPushes: true,
		},
		Serving: Serving{
			ViewRetention:      time.Minute,
			ViewRetentionBytes: 256 << 20,
			PushBytes:          16 << 20,
			SendTimeout:        time.Minute,
			ShutdownDuration:   10 * time.Second,
		},
		Limits: budget.Defaults(),
		Keepalive: Keepalive{
			Interval:    30 * time.Second,
			Timeout:     10 * time.Second,
			MaxAgeGrace: 10 * time.Second,
		},
		History: History{Revisions: 100, Bytes: 32 << 20, Rollout: Rollout{Hold: 5 * time.Minute, MetricInterval: 15 * time.Second}},
		Log:     Log{Level: "info", Format: "text", TraceRatio: 1},
	}
}
