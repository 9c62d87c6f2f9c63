package mesh

import (
	"fmt"
	"testing"
)

// TestPlaces: an entry's settings come from where its config says, the shared ones first.
func TestPlaces(t *testing.T) {
	for config, want := range map[string]string{
		``: "[]",
		`{"configMap":"istio-x","namespace":"n"}`: "[{MeshConfig  n istio-x mesh} {MeshNetworks  n istio-x meshNetworks}]",
		`{"sharedConfigMap":"s","meshConfig":"/m","networksConfig":"/dev/null"}`: "[{MeshConfig  istio-system s mesh} {MeshConfig /m   } " +
			"{MeshNetworks  istio-system s meshNetworks}]",
	} {
		if got, err := Places([]byte(config)); fmt.Sprint(got) != want || err != nil {
			t.Errorf("%s: %v, %v", config, got, err)
		}
	}
	if _, err := Places([]byte(`{"namespace":""}`)); err == nil {
		t.Error("a config that is refused has places")
	}
}
