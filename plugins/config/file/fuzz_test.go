package file

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/validation"
)

// FuzzResources reads whatever stands in a file of resources, and checks what it reads: each fault
// has a place.
func FuzzResources(f *testing.F) {
	f.Add([]byte("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x}\nspec:\n  hosts: " +
		"[a.example]\n  http: [{route: [{destination: {host: a.example}}]}]\n"))
	f.Add([]byte("apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: x}\nspec: &s {servers: [*s]}\n---\nkind: List\nitems: []\n"))
	f.Add([]byte("apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: x}\nspec: " +
		"{configPatches: [{applyTo: CLUSTER, patch: {operation: ADD, value: {name: a}}}]}\n"))
	for _, c := range validation.Codes() {
		f.Add([]byte(c.Wrong.Documents))
		f.Add([]byte(c.Right.Documents))
	}
	check := validation.New().Check
	f.Fuzz(func(t *testing.T, text []byte) {
		faults, _ := Validate([]string{"f.yaml"}, func(string) ([]byte, error) { return text, nil }, check)
		for _, fault := range faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Code == "" || fault.Message == "" {
				t.Errorf("without a place, a code or a message: %+v", fault)
			}
		}
	})
}
