package rules

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	mesh "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Codes about the mesh's settings.
const (
	missingSetting = "COX2901"
	badTrustDomain = "COX2902"
	badProvider    = "COX2903"
	badNetwork     = "COX2904"
	unreadSource   = "COX2905"
)

// maxConnect is the longest time that connecting may take.
const maxConnect = time.Hour

// meshConfig checks settings as they count: with the defaults filled in.
func (c *checker) meshConfig(m *mesh.MeshConfig) {
	c.meshPorts(m)
	c.trustDomains(m)
	if m.RootNamespace == "" {
		c.fail(missingSetting, "rootNamespace", "rootNamespace must be set").hint("leave it out for the default")
	} else if !isLabel(m.RootNamespace) {
		c.fail(badHost, "rootNamespace", "%s is no name of a namespace", quote(m.RootNamespace))
	}
	c.meshDurations(m)
	c.meshTLS(m)
	c.localities("localityLbSetting", m.LocalityLbSetting, false)
	c.meshVisibility(m)
	if vainRetry(m.DefaultHttpRetryPolicy) { // istiod takes it
		c.warn(badRetry, "defaultHttpRetryPolicy",
			"attempts are set to 0: nothing is tried again, and the rest means nothing").hint("set attempts, or remove the rest")
	}
	c.retryPolicy("defaultHttpRetryPolicy", m.DefaultHttpRetryPolicy)
	if p := m.DefaultTrafficPolicy; p != nil {
		c.connectionPool("defaultTrafficPolicy.connectionPool", p.ConnectionPool)
		c.outlierDetection("defaultTrafficPolicy.outlierDetection", p.OutlierDetection)
	}
	c.extensionProviders(m)
	c.configSources(m)
	for i, s := range m.DiscoverySelectors {
		c.meshSelector(path("discoverySelectors").index(i), s)
	}
	if m.DefaultConfig == nil {
		c.fail(missingSetting, "defaultConfig", "default config is missing")
	} else {
		c.proxyConfig("defaultConfig", m.DefaultConfig)
	}
}

// configSources says of each source that an istiod would read what reads it here. That of the
// cluster's own resources (k8s://) takes nothing.
func (c *checker) configSources(m *mesh.MeshConfig) {
	for i, s := range m.ConfigSources {
		instead := ""
		switch scheme, _, _ := strings.Cut(s.Address, "://"); scheme {
		case "k8s":
			continue
		case "xds":
			instead = "config/xds"
		case "fs":
			instead = "config/file"
		default:
			c.warn(unreadSource, path("configSources").index(i).field("address"),
				"%s is not read, nor would an istiod read it: it is of none of xds, fs and k8s", quote(s.Address))
			continue
		}
		c.warn(unreadSource, path("configSources").index(i), "%s is not read from here", quote(s.Address)).hint(
			"an entry of plugins.yaml with `builtin: %s` reads it", instead,
		)
	}
}

func (c *checker) meshPorts(m *mesh.MeshConfig) {
	c.meshPort("proxyListenPort", m.ProxyListenPort)
	c.meshPort("proxyInboundListenPort", m.ProxyInboundListenPort)
	if m.ProxyHttpPort != 0 {
		c.meshPort("proxyHttpPort", m.ProxyHttpPort)
	}
}

func (c *checker) meshPort(at path, number int32) {
	if number < 1 || number > maxPort {
		c.fail(badPort, at, "invalid %s: %d is no port; it must be in the range 1..65535", string(at), number)
	}
}

// trustDomains checks names that become parts of SPIFFE IDs. Source: SPIFFE-ID 2.1, and istiod's
// stricter rule, DNS names.
func (c *checker) trustDomains(m *mesh.MeshConfig) {
	c.trustDomain("trustDomain", m.TrustDomain)
	for i, alias := range m.TrustDomainAliases {
		c.trustDomain(path("trustDomainAliases").index(i), alias)
	}
}

func (c *checker) trustDomain(at path, name string) {
	if why := hostFault(name, false); why != "" {
		c.fail(badTrustDomain, at, "%s: %s", string(at), why).hint("write a DNS name such as cluster.local")
	}
}

func (c *checker) meshDurations(m *mesh.MeshConfig) {
	if m.ConnectTimeout == nil {
		c.fail(missingSetting, "connectTimeout", "invalid connect timeout: it must be set")
	} else if c.duration("connectTimeout", m.ConnectTimeout, false); m.ConnectTimeout.AsDuration() > maxConnect {
		c.fail(badDuration, "connectTimeout", "invalid connect timeout: duration must be at most %s", maxConnect)
	}
	c.duration("protocolDetectionTimeout", m.ProtocolDetectionTimeout, true)
	c.duration("dnsRefreshRate", m.DnsRefreshRate, false)
	c.duration("hboneIdleTimeout", m.HboneIdleTimeout, true)
}

// curves of elliptic cryptography that proxies know. Source: Envoy, TlsParameters.ecdh_curves.
var curves = []string{"P-256", "P-384", "P-521", "X25519", "X25519MLKEM768"}

func (c *checker) meshTLS(m *mesh.MeshConfig) {
	if len(m.GetMeshMTLS().GetEcdhCurves()) > 0 {
		c.fail(badCipher, "meshMTLS.ecdhCurves", "mesh TLS does not support ECDH curves configuration").hint("tlsDefaults does")
	}
	c.ciphers("meshMTLS.cipherSuites", m.GetMeshMTLS().GetCipherSuites())
	c.ciphers("tlsDefaults.cipherSuites", m.GetTlsDefaults().GetCipherSuites())
	seen := map[string]bool{}
	for i, curve := range m.GetTlsDefaults().GetEcdhCurves() {
		here := path("tlsDefaults.ecdhCurves").index(i)
		if !slices.Contains(curves, curve) {
			c.warn(badCipher, here, "detected unrecognized ECDH curves: %s", quote(curve)).hint("known are %s", strings.Join(curves, ", "))
		}
		if seen[curve] {
			c.warn(badCipher, here, "detected duplicate ECDH curves: %s", quote(curve))
		}
		seen[curve] = true
	}
}

func (c *checker) meshVisibility(m *mesh.MeshConfig) {
	c.defaultExportTo("defaultServiceExportTo", m.DefaultServiceExportTo, true)
	c.defaultExportTo("defaultVirtualServiceExportTo", m.DefaultVirtualServiceExportTo, false)
	c.defaultExportTo("defaultDestinationRuleExportTo", m.DefaultDestinationRuleExportTo, false)
	for i, s := range m.ServiceSettings {
		for j, host := range s.Hosts {
			c.host(path("serviceSettings").index(i).field("hosts").index(j), host)
		}
	}
}

// defaultExportTo warns of what a resource would be refused for: as istiod takes it from the mesh's
// settings, so must who takes istiod's place.
func (c *checker) defaultExportTo(at path, list []string, none bool) {
	from := len(c.found)
	c.exportTo(at, list, none)
	for i := range c.found[from:] {
		c.found[from+i].Severity = finding.Warning
	}
}

// operators of selectors' expressions. Source: Kubernetes, LabelSelectorRequirement.
var operators = []string{"DoesNotExist", "Exists", "In", "NotIn"}

func (c *checker) meshSelector(at path, s *mesh.LabelSelector) {
	c.labels(at.field("matchLabels"), s.GetMatchLabels())
	for i, e := range s.GetMatchExpressions() {
		here := at.field("matchExpressions").index(i)
		needs := e.GetOperator() == "In" || e.GetOperator() == "NotIn"
		switch {
		case e.GetKey() == "":
			c.fail(badLabel, here.field("key"), "key must be set")
		case !slices.Contains(operators, e.GetOperator()):
			c.fail(badLabel, here.field("operator"), "%s is not a valid label selector operator", quote(e.GetOperator())).hint("write one of %s",
				strings.Join(operators, ", "))
		case needs && len(e.Values) == 0:
			c.fail(badLabel, here.field("values"), "values must be set for operator %s", e.Operator)
		case !needs && len(e.Values) > 0:
			c.fail(badLabel, here.field("values"), "values must not be set for operator %s", e.Operator)
		}
	}
}

// hostPort checks an address such as zipkin.istio-system:9411.
func (c *checker) hostPort(at path, address string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		c.fail(badAddress, at, "unable to split %s into host and port", quote(address)).hint("write HOST:PORT; IPv6 addresses stand in brackets")
		return
	}
	if number, err := strconv.ParseUint(port, 10, 32); err != nil || number < 1 || number > maxPort {
		c.fail(badPort, at, "port (%s) is not a number in the range 1..65535", quote(port))
	}
	// A variable is filled in by the proxy's agent.
	if !strings.HasPrefix(host, "$(") {
		c.nameOrIP(at, host)
	}
}

// pollDelay checks how often a provider of private keys looks for work.
func (c *checker) pollDelay(at path, d *durationpb.Duration) {
	if d == nil || d.AsDuration() <= 0 {
		c.fail(badDuration, at, "pollDelay is required, and must be above 0")
	}
}
