package istio

import (
	"slices"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	securityv1 "istio.io/api/security/v1beta1"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// TestStrictPortWithoutCertificates: a port that takes mutual TLS alone takes nothing where nobody
// serves the proxy certificates; it is not one of the ports that the rest of the policy is for,
// whether or not a service names it.
func TestStrictPortWithoutCertificates(t *testing.T) {
	type mode = securityv1.PeerAuthentication_MutualTLS
	for _, alone := range []bool{true, false} {
		w := newWorld(t)
		w.commit(append(web("10.9.9.9"), rows(config.PeerAuthentications, resource("default/p", &securityv1.PeerAuthentication{
			Selector: &typev1.WorkloadSelector{MatchLabels: map[string]string{"app": "web"}},
			Mtls:     &mode{Mode: securityv1.PeerAuthentication_MutualTLS_PERMISSIVE},
			PortLevelMtls: map[uint32]*mode{
				8080: {Mode: securityv1.PeerAuthentication_MutualTLS_STRICT},
				9999: {Mode: securityv1.PeerAuthentication_MutualTLS_STRICT},
			},
		})))...)
		metadata := map[string]any{"LABELS": map[string]any{"app": "web"}}
		if alone {
			metadata["COXSWAIN_NO_AGENT"] = "true"
		}
		w.attach(1, proxy(sidecarID, nil, metadata))
		for _, port := range []uint32{8080, 9999} {
			own := slices.DeleteFunc(slices.Clone(w.listener(1, "virtualInbound").FilterChains), func(f *listenerv3.FilterChain) bool {
				return f.GetFilterChainMatch().GetDestinationPort().GetValue() != port
			})
			if len(own) == 0 {
				t.Errorf("alone %v: port %d is one of all others", alone, port)
			}
			for _, f := range own {
				if closed := f.TransportSocket == nil &&
					containsText(map[string][]byte{"": f.Filters[len(f.Filters)-1].GetTypedConfig().GetValue()}, "BlackHoleCluster"); closed != alone {
					t.Errorf("alone %v: port %d: %v", alone, port, f)
				}
			}
		}
	}
}
