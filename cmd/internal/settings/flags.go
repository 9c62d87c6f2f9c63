package settings

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/coxswain-mesh/coxswain/internal/setting"
	"github.com/spf13/pflag"
)

// SettingsFlag names the file that settings are read from.
const SettingsFlag = "settings"

// Prefix of the environment variables.
const Prefix = "COXSWAIN_"

// Flags adds a flag for each setting, with the defaults d. Load reads them.
func Flags(fs *pflag.FlagSet, d Settings) {
	fs.SortFlags = false
	fs.String(SettingsFlag, "", "YAML file with settings, by the names of these flags")

	fs.String("plugins", d.Plugins, "plugins.yaml to run in place of the built-in set")
	fs.Bool("dev", d.Dev, "for authors of plugins: swap a plugin when its program (executable, script, module) changes")
	fs.String("configDir", d.ConfigDir, "directory of Istio resources, for the set's config/file")
	fs.Bool("trustCreationTimestamp", d.TrustCreationTimestamp, "one owner writes all of configDir, as of a cluster's "+
		"export: of objects that compete, the one with the earlier metadata.creationTimestamp counts, and of equals the "+
		"first by name")
	fs.String("meshConfig", d.MeshConfig, "file with MeshConfig, for the set's config/mesh; a missing or empty one means the defaults")
	fs.String("networksConfig", d.NetworksConfig, "file with MeshNetworks, for the set's config/mesh; a missing or empty one means none")
	fs.Bool("manageGateways", d.ManageGateways, "deploy what serves Gateways of the Gateway API, by the set's "+
		"controller/gateway, as istiod's PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER (which is read, too); the "+
		"rights are deploy/kubernetes/gateways.yaml")
	fs.Bool("autoRegistration", d.AutoRegistration, "make WorkloadEntries of WorkloadGroups for agents that connect and "+
		"ask for one, by the set's controller/registration, as istiod's PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION "+
		"(which is read, too); the rights are deploy/kubernetes/registration.yaml")
	fs.Bool("enableAnalysis", d.Analysis, "write what is found of Istio's resources into their statuses, by the set's "+
		"controller/analysis, as istiod's PILOT_ENABLE_ANALYSIS (which is read, too); the rights are "+
		"deploy/kubernetes/analysis.yaml")
	fs.Bool("untaintNodes", d.Untaint.Nodes, "take from nodes the taint that keeps pods from them until Istio's CNI plugin is "+
		"ready there, by the set's controller/untaint, as istiod's PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS (which is "+
		"read, too); the rights are deploy/kubernetes/untaint.yaml")
	fs.String("nodeTaint", d.Untaint.Taint, "the key of that taint; empty: cni.istio.io/not-ready (istiod's "+
		"PILOT_NODE_UNTAINT_CONTROLLERS_TAINT_NAME is read, too)")
	fs.String("cniNamespace", d.Untaint.CNINamespace, "namespace of the CNI plugin's pods, for the set's controller/untaint; "+
		"empty: the control plane's")
	fs.String("dnsAddr", d.DNSAddr,
		"answer DNS queries for services at IP:PORT, by UDP and TCP, by the set's controller/dns, for clients without an agent; empty: nowhere")
	fs.Bool("dualStack", d.DualStack,
		"proxies, services and pods with addresses of both families use both, for the set's generator/istio and registry/kubernetes (istiod: ISTIO_DUAL_STACK)")
	fs.String("modulesDir", d.Modules.Dir, "directory for modules of WasmPlugins and TrafficExtensions that images "+
		"(oci://) and servers (https://) have, which are fetched for Envoys without an agent, by the set's "+
		"config/modules; empty: they are not")
	fs.String("modulesBlocked", d.Modules.Blocked,
		"addresses that are never connected to for them, separated by commas: whoever may write a WasmPlugin names who is asked")

	clusterFlags(fs, d)
	callerFlags(fs, d)
	portFlags(fs, d)
	servingFlags(fs, d)
}

// clusterFlags are those of the clusters and registries that are read.
func clusterFlags(fs *pflag.FlagSet, d Settings) {
	fs.String("registries", d.Registries, "Kubernetes: run the set for a cluster; Consul or Eureka: the one for files "+
		"with registry/consul or registry/eureka; empty: the one for files; auto: Kubernetes with --kubeconfig, and in "+
		"a pod without --configDir. ZooKeeper, Nacos, etcd, and several at once: by a plugins.yaml")
	fs.String("consulserverURL", d.ConsulServerURL, "URL of Consul, for the set's registry/consul; empty: http://127.0.0.1:8500")
	fs.String("eurekaserverURL", d.EurekaServerURL, "URL of Eureka, for the set's registry/eureka; empty: http://127.0.0.1:8761/eureka")
	fs.String("kubeconfig", d.Kubeconfig, "file with the API server's address and credentials, for the set's plugins "+
		"that read a cluster; empty: KUBECONFIG, ~/.kube/config, or the pod's service account")
	fs.Bool("readOnly", d.ReadOnly,
		"write nothing in any cluster: no controller runs, and what built-in plugins would write is not sent; for a look at a cluster that others manage")
	fs.StringP("namespace", "n", d.Namespace,
		"the control plane's namespace: of the set's ConfigMaps and of Secrets of other clusters, and of callers who may see all debug pages")
	fs.String("clusterRegistriesNamespace", d.Remotes.Namespace,
		"namespace of the Secrets of other clusters, for the set's registry/clusters; empty: that of --namespace")
	fs.String("clusterKubeconfigs", d.Remotes.Kubeconfigs,
		"directory with kubeconfigs of other clusters (*.yaml, *.yml), in place of Secrets, for the set's registry/clusters and registry/kubernetes")
	fs.String("sharedMeshConfig", d.SharedMeshConfig,
		"ConfigMap with MeshConfig that counts where that of the control plane's own says nothing, for the set's config/mesh")
	fs.String("clusterID", d.ClusterID, "the cluster's id in the mesh, for the set's registry/kubernetes")
	fs.Var(&joined{text: d.ClusterAliases}, "clusterAliases",
		"other ids by which proxies may call their cluster, for the set's generators: ALIAS=CLUSTER, joined by commas, or the flag again")
	fs.String("domain", d.Domain, "DNS domain of the cluster's services, for the set's registry/kubernetes")
	fs.String("revision", d.Revision,
		"this control plane's revision, for the set's config/kubernetes: resources labelled with another istio.io/rev are left out")
	fs.Float64("kubernetesApiQPS", d.QPS, "requests a second that each plugin may make to the API server")
	fs.Int("kubernetesApiBurst", d.Burst, "how many of them at once, beyond that")
	fs.Duration("remoteClusterTimeout", d.Remotes.Timeout,
		"how long the start waits for other clusters that can't be reached (of entries with forEach: where they don't say)")
}

// callerFlags are those of certificates, and of who is believed to call.
func callerFlags(fs *pflag.FlagSet, d Settings) {
	fs.Bool("enableCAServer", d.Callers.Signing.CAServer,
		"whether the set for a cluster signs certificates of workloads (controller/ca), as istiod's ENABLE_CA_SERVER (which is read, too)")
	fs.String("externalCA", d.Callers.Signing.ExternalCA, "who signs in the place of the set's controller/ca, as "+
		"istiod's EXTERNAL_CA (which is read, too): ISTIOD_RA_KUBERNETES_API, by requests of the cluster's CSR API; "+
		"empty: nobody")
	fs.String("k8sSigner", d.Callers.Signing.K8sSigner,
		"the cluster's signer that externalCA asks, as istiod's K8S_SIGNER (which is read, too), such as issuers.example.com/mesh")
	fs.String("certSignerDomain", d.Callers.Signing.SignerDomain,
		"domain of the cluster's signers that workloads may name, as istiod's CERT_SIGNER_DOMAIN (which is read, too)")
	fs.String("pilotCertProvider", d.Callers.Signing.Provider, "who makes secureGRPCAddr's own certificate, as istiod's "+
		"PILOT_CERT_PROVIDER (which is read, too): istiod, the set's controller/ca; k8s.io/SIGNER, a signer of the "+
		"cluster's; custom, nobody: the files "+
		"are those of tlsCertFile, tlsKeyFile and caCertFile, or those in "+WellKnown+"; none, nobody")
	fs.String("caTrustedNodeAccounts", d.Callers.Signing.NodeAccounts, "service accounts (NAMESPACE/NAME) of agents of "+
		"nodes, separated by commas, as istiod's CA_TRUSTED_NODE_ACCOUNTS (which is read, too), for the set's "+
		"controller/ca; they may ask for certificates of the accounts whose pods are on their node")
	fs.String("replaceRoot", d.Callers.Signing.ReplaceRoot, "SHA-256 of a root that others have handed out, and that "+
		"the root of the set's controller/ca takes the place of; joined by commas. Without it a root of somebody else "+
		"is never overwritten")
	fs.String("spiffeBundleEndpoints", d.Callers.Signing.BundleEndpoints, "where other trust domains publish their "+
		"authorities, as istiod's SPIFFE_BUNDLE_ENDPOINTS (which is read, too): a trust domain, a bar and its URL, "+
		"several joined by two bars; for the set's config/spiffe, which that enables")
	fs.Bool("enableClusterTrustBundleAPI", d.Callers.Signing.TrustBundle, "hand the root out in the cluster's "+
		"ClusterTrustBundle, in the place of a ConfigMap in each namespace, as istiod's ENABLE_CLUSTER_TRUST_BUNDLE_API "+
		"(which is read, too); for the set's controller/ca")
	fs.Bool("multiRootMesh", d.Callers.Signing.MultiRoot, "believe the authorities that the mesh's settings name "+
		"(caCertificates), too, as istiod's ISTIO_MULTIROOT_MESH (which is read, too); enables the set's config/spiffe")
	fs.String("tokenAudiences", d.Callers.TokenAudiences, "audiences of tokens of service accounts, separated by "+
		"commas, as istiod's TOKEN_AUDIENCES (which is read, too), for the set's authenticator/kubernetes; empty: istio-ca")
	fs.String("trustedGatewayCIDR", d.Callers.TrustedGatewayCIDR, "addresses of gateways whose header "+
		"x-forwarded-client-cert counts, separated by commas, as istiod's TRUSTED_GATEWAY_CIDR (which is read, too); "+
		"for the set's authenticator/xfcc")
	fs.Bool("foreignTrustDomains", d.Callers.ForeignTrustDomains,
		"let callers come whose trust domain is neither the mesh's (trustDomain of its settings) nor one of its aliases, as istiod does")
	fs.String("jwtRule", d.Callers.JWTRule, "whose tokens of OpenID Connect count, as istiod's JWT_RULE (which is read, "+
		"too): JSON with issuer, audiences, and jwksUri or jwks; for the set's authenticator/jwt")
}

// portFlags are those of addresses and TLS.
func portFlags(fs *pflag.FlagSet, d Settings) {
	fs.Bool("istiodDefaults", d.IstiodDefaults, "listen where istiod does unless told otherwise: httpAddr is :8080, "+
		"monitoringAddr :15014, secureGRPCAddr :15012, and grpcAddr none, as plain text is to be asked for")
	fs.String("grpcAddr", d.GRPCAddr, "address for xDS in plain text; empty: that of httpAddr, beside pages; none: no address")
	fs.String("httpAddr", d.HTTPAddr, "address for readiness and debug pages; empty or none: no address")
	fs.String("monitoringAddr", d.MonitoringAddr, "address for metrics and version; empty or none: no address")
	fs.Bool("monitoringTLS", d.MonitoringTLS, "serve monitoringAddr by TLS, too, with the certificate of "+
		"secureGRPCAddr; in plain text callers of other machines get /metrics, /ready and /version alone")
	fs.Bool("uiActions", d.UIActions, "let those who log in with coxswain ui change something from the page of monitoringAddr: pins, holds, stages and plugins")
	fs.String("secureGRPCAddr", d.SecureGRPCAddr, "address for xDS over TLS, and for calls of plugins such as "+
		"controller/ca; open where a certificate can be had: from files, or from a plugin that makes one; empty or none: no address")
	fs.String("istiodCustomHost", d.CustomHost,
		"more DNS names that a certificate made for secureGRPCAddr is to have, joined by commas (istiod: ISTIOD_CUSTOM_HOST)")
	fs.String("httpsClientCAFile", d.HTTPSClientCAFile,
		"PEM file with the authorities of clients that may send webhooks to httpsAddr; empty: everybody who can reach it may, as with istiod")
	fs.String("httpsAddr", d.HTTPSAddr, "address for webhooks, which controllers answer (controller/injector, "+
		"controller/validator: it enables those of the set for a cluster), with the certificate of secureGRPCAddr; "+
		"istiod: :15017; empty or none: no address; closed with --readOnly")
	fs.Bool("authPlaintext", d.AuthPlaintext, "ask the set's authenticators who is calling in plain text, too; otherwise nobody knows, as with istiod")

	fs.String("caCertFile", d.CACertFile, "PEM file with the authorities of clients' certificates, for secureGRPCAddr; "+
		"read again when it changes; without it a plugin such as controller/ca makes the port's certificate")
	fs.String("tlsCertFile", d.CertFile, "PEM file with the certificate of secureGRPCAddr; read again when it changes")
	fs.String("tlsKeyFile", d.KeyFile, "PEM file with its key, in the same directory")
	fs.String("tls-min-version", d.MinVersion, "least TLS version of secureGRPCAddr: 1.2 or 1.3")
	fs.String("tls-cipher-suites", d.CipherSuites, "cipher suites of TLS 1.2 on secureGRPCAddr, IANA's names separated by commas; empty: Go's choice")
}

// servingFlags are those of when and how much is served.
func servingFlags(fs *pflag.FlagSet, d Settings) {
	declared(fs, d.Timing)
	fs.Bool("followPushes", d.FollowPushes, "keep what the last pushes were for and whom they reached, for the commands watch and wait, and for the history")
	fs.Bool("quarantine", d.Quarantine,
		"hold parts of resources that most identities of a namespace refuse at what most had before, for the namespace's other proxies, until they change")

	fs.Int("pushThrottle", d.PushThrottle, "how many pushes may be under way at once; 0: no bound")
	fs.Int64("pushBytes", d.PushBytes, "bytes of responses that may be on their way at once; a push waits while there are more; 0: no bound")
	fs.Duration("sendTimeout", d.SendTimeout, "close a stream whose client has not read for this time; 0: never")
	fs.Int64("memoryLimit", d.MemoryLimit,
		"bytes of memory that the core may use, plugins not counted; 0: what GOMEMLIMIT says, or half of what the machine or cgroup has")
	fs.Int64("maxNamespaceBytes", d.NamespaceBytes,
		"bytes of memory that the objects of one namespace may cost, as estimated; the oldest are kept, newer ones refused; 0: a quarter of memoryLimit")
	fs.String("unboundedNamespaces", d.UnboundedNamespaces,
		"namespaces whose objects may cost anything, joined by commas, as those of the control plane's own may: the mesh's root namespace belongs here")
	fs.Duration("shutdownDuration", d.ShutdownDuration, "how long a stop may take")

	fs.Duration("viewRetention", d.ViewRetention, "how long what proxies get stays made after the last of them left, for those who come back; 0: not at all")
	fs.Int64("viewRetentionBytes", d.ViewRetentionBytes, "how much is kept so, in bytes; what was left longest ago goes first; 0: no bound")
	declared(fs, d.Limits)

	fs.Duration("keepaliveInterval", d.Keepalive.Interval, "ask a quiet xDS client for a sign of life after this time")
	fs.Duration("keepaliveTimeout", d.Keepalive.Timeout, "close its connection if none comes for this time")
	fs.Duration("keepaliveMaxServerConnectionAge", d.Keepalive.MaxAge, "send xDS clients away after this time, give or take a tenth; 0: never")
	fs.Duration("keepaliveMaxServerConnectionAgeGrace", d.Keepalive.MaxAgeGrace, "how long they may take to go")

	fs.String("stateDir", d.History.StateDir, "directory for what outlives a restart: the history of revisions, pins, "+
		"and which objects were there first; one for each control plane; empty: nothing does")
	fs.Int("historyRevisions", d.History.Revisions, "how many of the last revisions are kept, to be looked at, compared and pinned; 0: none")
	fs.Int64("historyBytes", d.History.Bytes, "memory, and disk, that what is not served any more may take, in bytes; the oldest revisions go first")

	d.History.Rollout.flags(fs)
	d.Log.flags(fs)
}

// declared adds a flag for each setting that the tags of a struct declare (internal/setting), with
// the values of its fields as defaults.
func declared(fs *pflag.FlagSet, of any) {
	for _, f := range setting.Fields(of) {
		switch v := f.Value.Interface().(type) {
		case bool:
			fs.Bool(f.Name, v, f.Help)
		case int:
			fs.Int(f.Name, v, f.Help)
		case float64:
			fs.Float64(f.Name, v, f.Help)
		case time.Duration:
			fs.Duration(f.Name, v, f.Help)
		default:
			panic(fmt.Sprintf("setting %s: there is no flag of type %T", f.Name, v))
		}
	}
}

func (r Rollout) flags(fs *pflag.FlagSet) {
	fs.String("rolloutFirst", r.First,
		"proxies that try what people change before all others get it, as KEY=PATTERN joined by commas, such as namespace=canary; empty: all get it at once")
	fs.Duration("rolloutHold", r.Hold, "how long they are watched once all of them have acknowledged it, before the others get it")
	fs.String("rolloutMetricURL", r.MetricURL, "Prometheus server that is asked while they are watched")
	fs.String("rolloutMetricQuery", r.MetricQuery, "what it is asked; the highest sample counts; empty: no metric is watched")
	fs.Float64("rolloutMetricMost", r.MetricMost, "how high the answer may be; above it, all proxies are served what was served before")
	fs.Duration("rolloutMetricInterval", r.MetricInterval,
		"how often it is asked, first after so long: let the query's range be no longer, or what was before a change counts too")
}

func (l Log) flags(fs *pflag.FlagSet) {
	fs.String("logLevel", l.Level, "least level that is logged: debug, info, warn or error")
	fs.String("logFormat", l.Format, "how it is logged: text or json")
	fs.String("traceEndpoint", l.TraceEndpoint, "collector of OpenTelemetry that is sent a trace of each push (OTLP "+
		"over gRPC): http://HOST:4317, or https:// by TLS, whose files and headers the variables OTEL_EXPORTER_OTLP_... "+
		"name; empty: none")
	fs.Float64("traceRatio", l.TraceRatio, "how many of the pushes are traced: 0 (none) to 1 (each)")
	fs.String("auditLog", l.AuditLog, "file that keeps, as lines of JSON, who changed what of the plugins; empty: they are in the log alone")
}

// Variable returns the environment variable of a setting: debounceAfter is COXSWAIN_DEBOUNCE_AFTER,
// tls-min-version COXSWAIN_TLS_MIN_VERSION.
func Variable(name string) string {
	var b strings.Builder
	b.WriteString(Prefix)
	rs := []rune(name)
	for i, r := range rs {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(rs[i-1]) || i+1 < len(rs) && unicode.IsLower(rs[i+1])) {
			b.WriteByte('_')
		}
		if r == '-' {
			r = '_'
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// joined is a flag that may be given several times: its values are joined by commas.
type joined struct {
	text  string
	given bool
}

func (j *joined) String() string { return j.text }

func (*joined) Type() string { return "string" }

func (j *joined) Set(value string) error {
	if j.given {
		value = j.text + "," + value
	}
	j.text, j.given = value, true
	return nil
}
