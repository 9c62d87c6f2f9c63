// Package nacos has the trial of registry/nacos against Nacos' own server, which `make nacos` gets
// into the user's cache folder, once for each version of the folder server. It listens on all
// addresses, and so has a network namespace of its own.
package nacos

import (
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

func TestMain(m *testing.M) { registries.Main(m) }

func config(address string) map[string]any {
	return map[string]any{
		"servers": []string{address}, "username": user, "password": secret, "interval": "1s", "refresh": "20s",
		"timeout": "3s", "keep": "15s", "maxRetry": "2s",
	}
}

func wrong(address string) (map[string]any, string) {
	c := config(address)
	c["password"] = "wrong"
	return c, "it doesn't take username and password"
}

var trial = registries.Trial{
	Builtin: "registry/nacos",
	Start:   func(t testing.TB) registries.Server { return start(t) },
	Config:  config, Wrong: wrong, Session: 15 * time.Second, Offsets: []int{grpcOffset},
	Host: func(service string) string { return service + ".default-group.public.nacos" },
}

func TestTrial(t *testing.T) {
	need.All(t)
	trial.Run(t)
}

func TestChanges(t *testing.T) {
	need.All(t)
	trial.Changes(t)
}
