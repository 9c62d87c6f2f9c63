package config

import (
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestVersionsCostLittle: an EnvoyFilter of some kilobytes can't have gigabytes of compiled
// expressions kept for it; one that says the same in each patch has it compiled once.
func TestVersionsCostLittle(t *testing.T) {
	parse := func(expression func(i int) string) (*EnvoyFilter, error) {
		f := &networking.EnvoyFilter{}
		for i := range 100 {
			f.ConfigPatches = append(f.ConfigPatches, &networking.EnvoyFilter_EnvoyConfigObjectPatch{
				Match: &networking.EnvoyFilter_EnvoyConfigObjectMatch{Proxy: &networking.EnvoyFilter_ProxyMatch{ProxyVersion: expression(i)}},
			})
		}
		payload, err := kinds.Encode(f)
		if err != nil {
			t.Fatal(err)
		}
		return ParseEnvoyFilter(&pb.Row{Key: "tenant/f", Payload: payload})
	}
	if _, err := parse(func(i int) string { return strings.Repeat("a", i) + "(b{1,900})" }); err == nil || !strings.Contains(err.Error(), "instructions") {
		t.Errorf("it is taken: %v", err)
	}
	f, err := parse(func(int) string { return `^1\.31.*` })
	if err != nil || f.versions[0] != f.versions[99] {
		t.Errorf("one expression: %v", err)
	}
}
