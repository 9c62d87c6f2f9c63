package main

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

const note = `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": {}, "spec": {"text": "hello", "size": 1}, "status": {"read": true}}`

func TestConformance(t *testing.T) {
	suite := plugintest.Suite{Kind: "config", Object: note, BadObject: `{"apiVersion": "example.com/v1", "kind": "Note", "metadata": {}, "spec": {"text": 1}}`}
	plugintest.Conform(t, suite, append(plugintest.Built(t, "."), plugintest.Memory(plugin()))...)
}
