package main

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "controller"}, append(plugintest.Built(t, "."), plugintest.Memory(plugin()))...)
}

func TestCount(t *testing.T) {
	h := plugintest.Start(t, plugin(), nil)
	h.Update("services", []*sdk.Row{sdk.ServiceRow(&sdk.Service{Host: "a.example", Namespace: "default"})})
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool { return fields["count"] == "1" })
}
