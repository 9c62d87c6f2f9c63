package encode

import (
	"testing"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

// place is a secret's name and the cluster that serves it; without one the control plane does.
func place(s *tls.SdsSecretConfig) string {
	out := s.Name
	for _, g := range s.GetSdsConfig().GetApiConfigSource().GetGrpcServices() {
		out += " of " + g.GetEnvoyGrpc().GetClusterName()
	}
	return out
}

func TestCredential(t *testing.T) {
	service := External{Cluster: "outbound|8080||sds.example"}
	for _, c := range []struct {
		by         External
		name, want string
	}{
		{External{}, "web", "kubernetes://web"},
		{External{}, "kubernetes-gateway://ns/web", "kubernetes-gateway://ns/web"},
		{External{}, "kubernetes://ns/web", "kubernetes://ns/web"},
		{External{}, "configmap://ns/web", "configmap://ns/web"},
		{External{}, "invalid://web", "invalid://"},
		{External{}, "builtin://web", "default"},
		{External{}, "other://web", "kubernetes://other://web"},
		{service, "web-cacert", "kubernetes://web-cacert"},
		{service, "builtin://", "default of sds-grpc"},
		{service, "builtin://-cacert", "ROOTCA of sds-grpc"},
		{External{}, "sds://web", "kubernetes://web"},
		{service, "sds://web", "web of outbound|8080||sds.example"},
		{service, "sds://web-cacert", "web-cacert of outbound|8080||sds.example"},
		{External{Socket: true, Cluster: "c"}, "sds://web", "sds://web of sds-external"},
	} {
		if got := place(c.by.Credential(c.name)); got != c.want {
			t.Errorf("%+v, %s: %s, want %s", c.by, c.name, got, c.want)
		}
	}
}

// Who has no agent doesn't wait for long.
func TestPatience(t *testing.T) {
	if at := (External{}).Credential("web").SdsConfig.InitialFetchTimeout; at != nil {
		t.Errorf("with an agent: %v", at)
	}
	if at := (External{Alone: true}).Credential("web").SdsConfig.InitialFetchTimeout; at.AsDuration() != patience {
		t.Errorf("without: %v", at)
	}
}
