package main

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "patch"}, append(plugintest.Built(t, "."), plugintest.Memory(plugin()))...)
}
