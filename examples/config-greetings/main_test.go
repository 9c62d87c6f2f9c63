package main

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "config", Config: `{"hello": "world"}`, BadConfigs: []any{`{"hello": 1}`}},
		append(plugintest.Built(t, "."), plugintest.Memory(plugin()))...)
}

func TestGreetings(t *testing.T) {
	h := plugintest.Start(t, plugin(), `{"hello": "world"}`)
	h.WaitSynced()
	if row := h.Rows("example.com/Greeting")["default/hello"]; row == nil || string(row.Payload) != `{"text":"world"}` {
		t.Errorf("%v", row)
	}
}
