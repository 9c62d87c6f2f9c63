package kubernetes

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// TestGiven: what can't be an object of the table is refused before anybody is asked.
func TestGiven(t *testing.T) {
	at := schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "serviceentries"}
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	s := newSource(Config{Writes: true}, &server{objects: client, found: map[string]schema.GroupVersionResource{kinds.ServiceEntry: at}})
	head := `"apiVersion": "networking.istio.io/v1beta1", "kind": "ServiceEntry"`
	for text, field := range map[string]string{
		`{"apiVersion": "security.istio.io/v1", "kind": "ServiceEntry"}`:       "apiVersion",
		`{"apiVersion": "networking.istio.io/v1", "kind": "Gateway"}`:          "kind",
		`{` + head + `, "metadata": {"name": "web"}}`:                          "metadata.namespace",
		`{` + head + `, "metadata": {"namespace": "shop"}}`:                    "metadata.name",
		`{` + head + `, "metadata": {"namespace": "shop", "name": "web"}}`:     "metadata.resourceVersion",
		`{` + head + `, "metadata": []}`:                                       "metadata.namespace",
		`[]`:                                                                   "",
		`null`:                                                                 "",
		`{"apiVersion": {}, "kind": 1, "metadata": {"resourceVersion": true}}`: "apiVersion",
	} {
		_, err := s.Update(t.Context(), kinds.ServiceEntry, []byte(text))
		var e *sdk.StoreError
		if !errors.As(err, &e) || e.Code != sdk.StoreInvalid || e.Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := s.Get(t.Context(), kinds.FaultTable, "shop", "web"); sdk.CodeOf(err) != sdk.StoreUnsupported {
		t.Error(err)
	}
	if got := newSource(Config{}, s.server).Writes(); len(got) > 0 {
		t.Errorf("writes: false takes writes of %v", got)
	}
}
