// Package eureka has the trial of registry/eureka against Eureka's own server, which `make eureka`
// gets into the user's cache folder, once for each version of the folder server.
package eureka

import (
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

func TestMain(m *testing.M) { registries.Main(m) }

func config(address string) map[string]any {
	return map[string]any{
		"servers": []string{"http://" + address + "/eureka"}, "username": user, "password": secret,
		"interval": "250ms", "timeout": "5s", "deltaWindow": (window / 2).String(), "maxRetry": "2s",
	}
}

func wrong(address string) (map[string]any, string) {
	c := config(address)
	c["password"] = "wrong"
	return c, "status 401"
}

var trial = registries.Trial{
	Builtin: "registry/eureka",
	Start:   func(t testing.TB) registries.Server { return start(t) },
	Config:  config, Wrong: wrong, Session: window + 2*time.Second,
	Host: func(service string) string { return service + ".eureka" },
}

func TestTrial(t *testing.T) {
	need.All(t)
	trial.Run(t)
}

func TestChanges(t *testing.T) {
	need.All(t)
	trial.Changes(t)
}
