// Package etcd_test tries registry/etcd.
package etcd_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/coxswain-mesh/coxswain/test/etcd"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

func TestMain(m *testing.M) { registries.Main(m) }

const prefix = "/mesh/instances/"

// trial is one with users: nobody else may read the instances.
var trial = registries.Trial{
	Builtin: "registry/etcd",
	Start: func(t testing.TB) registries.Server {
		s := etcd.Start(t)
		s.Users(t, "mesh", "secret", prefix)
		return &server{s}
	},
	Config: func(address string) map[string]any { return config(address, "secret") },
	Wrong: func(address string) (map[string]any, string) {
		return config(address, "wrong"), "authentication failed"
	},
	Host:    func(service string) string { return service + ".example" },
	Session: 20 * time.Second, // signs of life are asked for each 10 s and awaited for 5
}

func config(address, password string) map[string]any {
	return map[string]any{"endpoints": []string{"http://" + address}, "prefix": prefix, "username": "mesh", "password": password}
}

func TestTrial(t *testing.T)   { trial.Run(t) }
func TestChanges(t *testing.T) { trial.Changes(t) }

// server is an etcd with instances.
type server struct{ *etcd.Server }

func (s *server) Address() string { return s.Server.Address }

func key(i registries.Instance) string { return prefix + i.Service + "/" + i.ID }

func (s *server) Put(t testing.TB, all ...registries.Instance) {
	t.Helper()
	const atOnce = 100 // operations that a transaction may have: 128
	for len(all) > 0 {
		n := min(len(all), atOnce)
		var puts []clientv3.Op
		for _, i := range all[:n] {
			health := "healthy"
			if i.Unhealthy {
				health = "unhealthy"
			}
			value, err := json.Marshal(map[string]any{
				"host": i.Service + ".example", "address": i.Address, "ports": []map[string]any{{"number": i.Port, "name": "http", "protocol": "HTTP"}},
				"weight": i.Weight, "health": health, "labels": i.Metadata,
			})
			if err != nil {
				t.Fatal(err)
			}
			puts = append(puts, clientv3.OpPut(key(i), string(value)))
		}
		if _, err := s.Client.Txn(context.Background()).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
		all = all[n:]
	}
}

func (s *server) Remove(t testing.TB, all ...registries.Instance) {
	t.Helper()
	for _, i := range all {
		s.Delete(t, key(i))
	}
}

func (s *server) Stop(testing.TB)    { s.Down() }
func (s *server) Start(t testing.TB) { s.Up(t) }

// Forget implements registries.Forgetter.
func (s *server) Forget(t testing.TB) { s.Compact(t) }

// Spoil implements registries.Spoiler.
func (s *server) Spoil(t testing.TB, i registries.Instance) string {
	t.Helper()
	s.Server.Put(t, key(i), `{"host": "web.example", "address": "127.0.0.1", "ports": [{"number": "http"}]}`)
	return "etcd:" + key(i) + ":0:0: error: ports[0].number"
}
