package main

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "registry"}, append(plugintest.Built(t, "."), plugintest.Memory(plugin()))...)
}

func TestHello(t *testing.T) {
	h := plugintest.Start(t, plugin(), nil)
	h.WaitSynced()
	if h.Rows("services")["default/hello.example.com"] == nil || len(h.Rows("endpoints")) != 1 {
		t.Errorf("services %v, endpoints %v", h.Rows("services"), h.Rows("endpoints"))
	}
}
