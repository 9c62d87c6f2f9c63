package istio

import (
	"testing"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Credentials of a gateway called sds://NAME come from the mesh's service for them, as soon as it
// is there.
func TestSecretsOfAnExtensionProvider(t *testing.T) {
	w := newWorld(t)
	w.withMesh(`{"extensionProviders": [{"name": "vault", "sds": {"name": "vault", "service": "vault.example", "port": 8080}}]}`)
	gw := &networking.Gateway{Selector: map[string]string{"app": "gw"}, Servers: []*networking.Server{{
		Port: &networking.Port{Number: 443, Protocol: "HTTPS", Name: "https"}, Hosts: []string{"*"},
		Tls: &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_SIMPLE, CredentialName: "sds://web"},
	}}}
	w.commit(rows(config.Gateways, resource("default/gw", gw)))
	w.attach(1, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"app": "gw"}}))
	secret := func() *tls.SdsSecretConfig {
		var ctx tls.DownstreamTlsContext
		if err := w.listener(1, "0.0.0.0_443").FilterChains[0].TransportSocket.GetTypedConfig().UnmarshalTo(&ctx); err != nil {
			t.Fatal(err)
		}
		return ctx.CommonTlsContext.TlsCertificateSdsSecretConfigs[0]
	}
	if s := secret(); s.Name != "kubernetes://web" {
		t.Errorf("without the service: %v", s)
	}
	w.commit(rows(state.Services, sdk.ServiceRow(service("vault.example", &sdk.Port{Number: 8080, Name: "grpc", Protocol: "GRPC"}))))
	s := secret()
	from := s.GetSdsConfig().GetApiConfigSource().GetGrpcServices()
	if len(from) != 1 || s.Name != "web" || from[0].GetEnvoyGrpc().GetClusterName() != "outbound|8080||vault.example" {
		t.Errorf("with the service: %v", s)
	}
}

// A proxy's socket for secrets is a cluster of its own, which no patch changes.
func TestSocketForSecrets(t *testing.T) {
	for _, id := range []string{sidecarID, "router~10.9.9.8~gw.default~default.svc.cluster.local"} {
		w := newWorld(t)
		w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, "configPatches: [{applyTo: CLUSTER, patch: {operation: REMOVE}}]")))
		w.attach(1, proxy(id, nil, nil))
		w.attach(2, proxy(id, nil, map[string]any{"credential": "true"}))
		if got := w.get(1, encode.ClusterType); len(got) != 0 {
			t.Errorf("%s: %v", id, keysOf(got))
		}
		c := w.cluster(2, "sds-external")
		address := c.GetLoadAssignment().GetEndpoints()[0].LbEndpoints[0].GetEndpoint().GetAddress()
		if got := address.GetPipe().GetPath(); got != "./var/run/secrets/credential-uds/socket" {
			t.Errorf("%s: %v", id, c)
		}
	}
}
