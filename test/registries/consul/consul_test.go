// Package consul has the trial of registry/consul, as a process and as a module, against Consul
// itself.
//
// Consul is that of the module in server, the last one under the Mozilla Public License, which
// `make consul` builds into the user's cache folder, once for each go.sum.
package consul

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

func TestMain(m *testing.M) { registries.Main(m) }

func host(service string) string { return service + ".service.consul" }

// config is the plugin's. It waits for so short a time that a connection by which nothing passes is
// given up within a trial's patience.
func config(address string) map[string]any {
	return map[string]any{"address": "http://" + address, "token": reader, "wait": "5s"}
}

func wrong(address string) (map[string]any, string) {
	c := config(address)
	c["token"] = "5e0fc6aa-3b2e-4f58-8bfa-2cbf94a6c5a1"
	return c, "ACL not found"
}

var trial = registries.Trial{
	Builtin: "registry/consul",
	Start:   func(t testing.TB) registries.Server { return start(t) },
	Config:  config, Wrong: wrong, Host: host, Session: 8 * time.Second,
}

func TestTrial(t *testing.T) {
	need.All(t)
	trial.Run(t)
}

func TestChanges(t *testing.T) {
	need.All(t)
	trial.Changes(t)
}

// TestModule is the same trial of the same plugin as a WASM module.
func TestModule(t *testing.T) {
	need.All(t)
	module := filepath.Join(t.TempDir(), "registry-consul.wasm")
	mesh.Build(t, module, "../../../plugins/registry/consul/wasm", "GOOS=wasip1", "GOARCH=wasm")
	asModule := trial
	asModule.Entry = func(address string) string {
		return fmt.Sprintf("wasm: {path: %q, allow: {http: [%q]}}\ninsecure: true", module, address)
	}
	asModule.Config = func(address string) map[string]any { return quick(config(address)) }
	asModule.Wrong = func(address string) (map[string]any, string) {
		c, says := wrong(address)
		return quick(c), says
	}
	asModule.Run(t)
}

// quick has a module, which may ask about less at once than there are services, hear of news a
// second late at most.
func quick(c map[string]any) map[string]any {
	c["refresh"] = "1s"
	return c
}
