package policy

import (
	"testing"

	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
)

// TestMinimum: the mesh's settings number versions of TLS in another way than Envoy; each is said
// by its name.
func TestMinimum(t *testing.T) {
	names := map[string]string{"TLS_AUTO": "TLS_AUTO", "TLSV1_2": "TLSv1_2", "TLSV1_3": "TLSv1_3"}
	for number, name := range meshv1.MeshConfig_TLSConfig_TLSProtocol_name {
		said := &mesh.Config{TlsDefaults: &meshv1.MeshConfig_TLSConfig{MinProtocolVersion: meshv1.MeshConfig_TLSConfig_TLSProtocol(number)}}
		if got := tlsDefaults(said).Minimum.String(); got != names[name] {
			t.Errorf("%s: %s, want %q", name, got, names[name])
		}
	}
	if got := tlsDefaults(&mesh.Config{}).Minimum.String(); got != "TLS_AUTO" {
		t.Errorf("nothing said: %s", got)
	}
}
