package pcds

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "generator"}, plugintest.Memory(Plugin()))
}

func row(t *testing.T, key string, certificates ...string) *sdk.Row {
	t.Helper()
	payload, err := bundle.Bundle{TrustDomain: key, Certificates: certificates}.Payload()
	if err != nil {
		t.Fatal(err)
	}
	return &sdk.Row{Key: key, Payload: payload}
}

// TestAuthorities: agents get those of all trust domains, each once, in one order.
func TestAuthorities(t *testing.T) {
	h := plugintest.Start(t, Plugin(), nil)
	p := &sdk.Proxy{Types: []string{Type}}
	h.Update(bundle.Table, []*sdk.Row{row(t, "cluster.local", "c", "a"), row(t, "other.example", "b", "a")})
	h.Attach(p)
	var got mesh.ProxyConfig
	if err := proto.Unmarshal(h.Resources(p.Connection, Type)[everyone], &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.CaCertificatesPem, []string{"a", "b", "c"}) {
		t.Errorf("%q", got.CaCertificatesPem)
	}
	h.Update(bundle.Table, nil, "cluster.local", "other.example")
	if found := h.Resources(p.Connection, Type); len(found) > 0 && found[everyone] != nil {
		t.Errorf("all bundles are gone, and there are %d resources", len(found))
	}
}

func TestReadme(t *testing.T) {
	_, config := readme.Example(t, 1)
	plugintest.Start(t, Plugin(), config)
}
