// Package mesh is the mesh's settings, as inputs of the graph: each function of another package
// depends on the part that it asks for alone, so that a setting that changes costs what it changes.
package mesh

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	meshv1 "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/internal/clusterlocal"
	"github.com/coxswain-mesh/coxswain/plugins/internal/visibility"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is all of them, as Istio's API has them.
type Config = meshv1.MeshConfig

// Defaults that count where no mesh source is declared; one that is publishes the whole
// configuration with its own.
const (
	connectTimeout = 10 * time.Second
	dnsRefresh     = 60 * time.Second
	rootNamespace  = "istio-system"
	trustDomain    = istio.LocalTrustDomain
	outboundPort   = 15001
	inboundPort    = 15006
)

// Default counts where no source of settings is declared.
func Default() *Config {
	return &Config{
		ConnectTimeout:        durationpb.New(connectTimeout),
		DnsRefreshRate:        durationpb.New(dnsRefresh),
		RootNamespace:         rootNamespace,
		TrustDomain:           trustDomain,
		EnableTracing:         true,
		LocalityLbSetting:     &networking.LocalityLoadBalancerSetting{Enabled: wrapperspb.Bool(true)},
		EnableAutoMtls:        wrapperspb.Bool(true),
		OutboundTrafficPolicy: &meshv1.MeshConfig_OutboundTrafficPolicy{Mode: meshv1.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY},
	}
}

// only is the key of functions that have one value.
const only = ""

// Settings are the mesh's.
type Settings struct {
	graph      *incr.Graph
	row        *incr.Input[string, tables.Row[*Config]]
	namespaces *incr.Input[string, tables.Row[map[string]string]]

	clusters        *incr.Func[string, cluster.Mesh]
	listeners       *incr.Func[string, Listeners]
	retries         *incr.Func[string, *networking.HTTPRetry]
	exports         *incr.Func[string, Exports]
	root            *incr.Func[string, string]
	entryVisibility *incr.Func[string, visibility.Visibility]
	// localHosts are hosts of which clients reach endpoints of their own cluster alone, or not.
	localHosts *incr.Func[string, []clusterlocal.Host]
	// localInbound: workloads listen on loopback, where their proxies dial them.
	localInbound *incr.Func[string, bool]
	// proxyDefaults are the settings of proxies that have none of their own.
	proxyDefaults *incr.Func[string, *meshv1.ProxyConfig]
}

// Listeners are what listeners depend on, and what goes outside.
type Listeners struct {
	TrustDomain string
	// AllowAny: what goes outside is let through.
	AllowAny bool
	// Dynamic: hosts of such requests are looked up.
	Dynamic bool
	Paths   listener.Normalization
	// Detection is how long clients may take until their protocol is known.
	Detection time.Duration
	// Ports of proxies' own listeners.
	Ports listener.Ports
}

// Exports are the namespaces that see resources which don't say.
type Exports struct{ Services, VirtualServices, DestinationRules []string }

// New adds the settings to a graph; domain is that of the mesh's services.
func New(graph *incr.Graph, t *tables.Tables, domain string) *Settings {
	s := &Settings{graph: graph, row: t.Mesh, namespaces: t.Namespaces}
	s.clusters = Project(s, "mesh for clusters", func(m *Config) cluster.Mesh {
		return cluster.Mesh{
			ConnectTimeout: m.ConnectTimeout,
			TCPKeepalive:   m.TcpKeepalive,
			AutoMTLS:       m.GetEnableAutoMtls().GetValue(),
			UpgradeHTTP2:   m.H2UpgradePolicy == meshv1.MeshConfig_UPGRADE,
			DNSRefresh:     m.DnsRefreshRate,
			Locality:       m.LocalityLbSetting,
			Zones:          m.ZoneAwareLbSetting,
			TLS:            m.TlsDefaults,
			DynamicTLS:     m.GetOutboundTrafficPolicy().GetTls(),
			Baseline:       m.DefaultTrafficPolicy,
			OutboundStat:   m.OutboundClusterStatName,
			InboundStat:    m.InboundClusterStatName,
		}
	}, cluster.Mesh.Equal)
	s.listeners = Project(s, "mesh for listeners", func(m *Config) Listeners {
		return Listeners{
			Detection:   m.GetProtocolDetectionTimeout().AsDuration(),
			TrustDomain: m.TrustDomain,
			Paths:       m.GetPathNormalization().GetNormalization(),
			Ports: listener.Ports{
				Outbound: uint32(cmp.Or(m.ProxyListenPort, outboundPort)),
				Inbound:  uint32(cmp.Or(m.ProxyInboundListenPort, inboundPort)),
				Proxy:    uint32(max(0, m.ProxyHttpPort)),
			},
			Dynamic:  m.GetOutboundTrafficPolicy().GetMode() == meshv1.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS,
			AllowAny: m.GetOutboundTrafficPolicy().GetMode() != meshv1.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY,
		}
	}, incr.Same[Listeners])
	s.retries = Project(s, "mesh for retries", (*Config).GetDefaultHttpRetryPolicy,
		func(a, b *networking.HTTPRetry) bool { return proto.Equal(a, b) })
	s.exports = Project(s, "mesh for exports", func(m *Config) Exports {
		return Exports{m.DefaultServiceExportTo, m.DefaultVirtualServiceExportTo, m.DefaultDestinationRuleExportTo}
	}, func(a, b Exports) bool {
		return slices.Equal(a.Services, b.Services) && slices.Equal(a.VirtualServices, b.VirtualServices) &&
			slices.Equal(a.DestinationRules, b.DestinationRules)
	})
	s.addVisibility()
	s.localHosts = Project(s, "hosts of one cluster", func(m *Config) []clusterlocal.Host { return clusterlocal.Hosts(m, domain) }, slices.Equal)
	s.localInbound = Project(s, "mesh for inbound clusters", func(m *Config) bool {
		return m.GetInboundTrafficPolicy().GetMode() == meshv1.MeshConfig_InboundTrafficPolicy_LOCALHOST
	}, incr.Same[bool])
	s.proxyDefaults = Project(s, "mesh for proxies", (*Config).GetDefaultConfig, func(a, b *meshv1.ProxyConfig) bool { return proto.Equal(a, b) })
	s.root = Project(s, "root namespace", (*Config).GetRootNamespace, incr.Same[string])
	return s
}

// Project is a function of the mesh's settings alone, for who reads a part that is his only.
func Project[V any](s *Settings, name string, f func(*Config) V, equal func(a, b V) bool) *incr.Func[string, V] {
	return incr.NewFunc(s.graph, name, equal, func(c *incr.Ctx, _ string) (V, error) {
		if r, ok := s.row.Get(c, state.Mesh); ok {
			return f(r.Value), nil
		}
		return f(Default()), nil
	})
}

// Clusters are the settings that clusters heed.
func (s *Settings) Clusters(c *incr.Ctx) cluster.Mesh { return s.clusters.Of(c, only) }

// Listeners are the settings that listeners heed.
func (s *Settings) Listeners(c *incr.Ctx) Listeners { return s.listeners.Of(c, only) }

// Retries are those of routes that don't say; nil: Istio's.
func (s *Settings) Retries(c *incr.Ctx) *networking.HTTPRetry { return s.retries.Of(c, only) }

// Exports say who sees resources that don't say.
func (s *Settings) Exports(c *incr.Ctx) Exports { return s.exports.Of(c, only) }

// Root is the namespace whose policies are the mesh's.
func (s *Settings) Root(c *incr.Ctx) string { return s.root.Of(c, only) }

// LocalInbound reports whether workloads listen on loopback, where their proxies dial them.
func (s *Settings) LocalInbound(c *incr.Ctx) bool { return s.localInbound.Of(c, only) }

// IsLocal reports whether clients of a host reach endpoints of their own cluster alone.
func (s *Settings) IsLocal(c *incr.Ctx, host string) bool {
	return clusterlocal.Has(s.localHosts.Of(c, only), host)
}
