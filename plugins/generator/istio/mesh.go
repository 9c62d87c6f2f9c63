package istio

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
	"github.com/coxswain-mesh/coxswain/plugins/internal/clusterlocal"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

type meshConfig = meshv1.MeshConfig

// Defaults that count where no mesh source is declared; one that is publishes the whole configuration with its own.
const (
	connectTimeout = 10 * time.Second
	dnsRefresh     = 60 * time.Second
	rootNamespace  = "istio-system"
	trustDomain    = istio.LocalTrustDomain
	outboundPort   = 15001
	inboundPort    = 15006
)

func defaultMesh() *meshConfig {
	return &meshConfig{
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

// mesh are the parts of the mesh's settings that functions read, so that each depends on its own alone.
type mesh struct {
	clusterSettings  *incr.Func[string, cluster.Mesh]
	listenerSettings *incr.Func[string, listenerSettings]
	retries          *incr.Func[string, *networking.HTTPRetry]
	exports          *incr.Func[string, exports]
	root             *incr.Func[string, string]
	entryVisibility  *incr.Func[string, visibility]
	// localHosts are hosts of which clients reach endpoints of their own cluster alone, or not.
	localHosts *incr.Func[string, []clusterlocal.Host]
	// localInbound: workloads listen on loopback, where their proxies dial them.
	localInbound *incr.Func[string, bool]
	tlsDefaults  *incr.Func[string, listener.TLSDefaults]
}

type listenerSettings struct {
	trustDomain string
	// allowAny: what goes outside is let through.
	allowAny bool
	// dynamic: hosts of such requests are looked up.
	dynamic bool
	paths   listener.Normalization
	// detection is how long clients may take until their protocol is known.
	detection time.Duration
	// ports of proxies' own listeners.
	ports listener.Ports
}

// exports are the namespaces that see resources which don't say.
type exports struct{ services, virtualServices, destinationRules []string }

func (g *graph) addMesh() {
	g.clusterSettings = project(g, "mesh for clusters", func(m *meshConfig) cluster.Mesh {
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
	g.listenerSettings = project(g, "mesh for listeners", func(m *meshConfig) listenerSettings {
		return listenerSettings{
			detection:   m.GetProtocolDetectionTimeout().AsDuration(),
			trustDomain: m.TrustDomain,
			paths:       m.GetPathNormalization().GetNormalization(),
			ports: listener.Ports{
				Outbound: uint32(cmp.Or(m.ProxyListenPort, outboundPort)),
				Inbound:  uint32(cmp.Or(m.ProxyInboundListenPort, inboundPort)),
				Proxy:    uint32(max(0, m.ProxyHttpPort)),
			},
			dynamic:  m.GetOutboundTrafficPolicy().GetMode() == meshv1.MeshConfig_OutboundTrafficPolicy_ALLOW_ANY_DYNAMIC_DNS,
			allowAny: m.GetOutboundTrafficPolicy().GetMode() != meshv1.MeshConfig_OutboundTrafficPolicy_REGISTRY_ONLY,
		}
	}, incr.Same[listenerSettings])
	g.retries = project(g, "mesh for retries", (*meshConfig).GetDefaultHttpRetryPolicy,
		func(a, b *networking.HTTPRetry) bool { return proto.Equal(a, b) })
	g.exports = project(g, "mesh for exports", func(m *meshConfig) exports {
		return exports{m.DefaultServiceExportTo, m.DefaultVirtualServiceExportTo, m.DefaultDestinationRuleExportTo}
	}, func(a, b exports) bool {
		return slices.Equal(a.services, b.services) && slices.Equal(a.virtualServices, b.virtualServices) &&
			slices.Equal(a.destinationRules, b.destinationRules)
	})
	g.addVisibility()
	g.localHosts = project(g, "hosts of one cluster", func(m *meshConfig) []clusterlocal.Host { return clusterlocal.Hosts(m, g.domain) }, slices.Equal)
	g.addTLSDefaults()
	g.localInbound = project(g, "mesh for inbound clusters", func(m *meshConfig) bool {
		return m.GetInboundTrafficPolicy().GetMode() == meshv1.MeshConfig_InboundTrafficPolicy_LOCALHOST
	}, incr.Same[bool])
	g.root = project(g, "root namespace", (*meshConfig).GetRootNamespace, incr.Same[string])
}

// project is a function of the mesh's settings alone.
func project[V any](g *graph, name string, f func(*meshConfig) V, equal func(a, b V) bool) *incr.Func[string, V] {
	return incr.NewFunc(g.Graph, name, equal, func(c *incr.Ctx, _ string) (V, error) {
		if r, ok := g.tables.Mesh.Get(c, state.Mesh); ok {
			return f(r.Value), nil
		}
		return f(defaultMesh()), nil
	})
}
