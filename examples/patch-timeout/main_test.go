package main

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "patch"}, append(plugintest.Built(t, "."), plugintest.Memory(plugin()))...)
}

func TestTimeout(t *testing.T) {
	h := plugintest.Start(t, plugin(), nil)
	got := h.Patch(plugin().Types[0].Url, nil, sdk.Resource{Name: "a", Body: []byte(`{"name":"a","connectTimeout":"10s"}`)})
	if len(got.Resources) != 1 || string(got.Resources[0].Bytes) != `{"connectTimeout":"2s","name":"a"}` {
		t.Errorf("%+v", got)
	}
}
