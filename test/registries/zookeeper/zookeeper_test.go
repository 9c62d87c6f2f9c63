// Package zookeeper tries registry/zookeeper: providers by interface, as Dubbo 2 registers them,
// and by application, as Dubbo 3 does. `make zookeeper` gets the server.
package zookeeper

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/zookeeper"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

func TestMain(m *testing.M) {
	netns.Main()
	registries.Main(m)
}

// config is the plugin's. What is lost by all of a sudden is kept for a shorter time than usual.
func config(address string) map[string]any {
	return map[string]any{
		"servers": []string{address}, "username": zookeeper.User, "password": zookeeper.Password, "session": "6s", "settle": "2s", "maxRetry": "3s",
		"labels": map[string]string{"version": "app.version"},
	}
}

func wrong(address string) (map[string]any, string) {
	c := config(address)
	c["password"] = "wrong"
	return c, "not authenticated"
}

// trial is that of interfaces.
var trial = registries.Trial{
	Builtin: "registry/zookeeper",
	Start:   func(t testing.TB) registries.Server { return start(t, &byInterface{}) },
	Config:  config, Wrong: wrong, Session: 8 * time.Second,
	Host:   func(service string) string { return strings.ReplaceAll(iface(service), "-", "--2d") + ".dubbo" },
	Cannot: map[string]string{registries.Malformed: "a provider is its node's name: another one is another provider; the trial of applications has it"},
}

// TestTrial tries interfaces.
func TestTrial(t *testing.T)   { trial.Run(t) }
func TestChanges(t *testing.T) { trial.Changes(t) }

// TestApplications tries applications, whose interfaces their metadata say.
func TestApplications(t *testing.T) {
	need.All(t)
	by := trial
	by.Cannot = nil
	by.Start = func(t testing.TB) registries.Server { return &spoiled{start(t, &byApplication{})} }
	by.Run(t)
}

// layout is how instances stand in ZooKeeper.
type layout interface {
	// put registers one, or changes it.
	put(s *server, t testing.TB, i registries.Instance)
	remove(s *server, t testing.TB, i registries.Instance)
}

// server is a ZooKeeper with instances.
type server struct {
	*zookeeper.Server
	layout layout
}

func start(t testing.TB, l layout) *server {
	s := &server{zookeeper.Start(t), l}
	for _, root := range []string{"/dubbo", "/services"} {
		s.Create(t, root, nil, false)
	}
	return s
}

func (s *server) Address() string    { return s.Server.Address }
func (s *server) Stop(testing.TB)    { s.Down() }
func (s *server) Start(t testing.TB) { s.Up(t) }

func (s *server) Put(t testing.TB, all ...registries.Instance) {
	t.Helper()
	s.each(all, func(i registries.Instance) { s.layout.put(s, t, i) })
}

func (s *server) Remove(t testing.TB, all ...registries.Instance) {
	t.Helper()
	s.each(all, func(i registries.Instance) { s.layout.remove(s, t, i) })
}

// each does something to instances, to some at once.
func (s *server) each(all []registries.Instance, do func(registries.Instance)) {
	due := make(chan registries.Instance)
	var done sync.WaitGroup
	for range min(len(all), 32) {
		done.Go(func() {
			for i := range due {
				do(i)
			}
		})
	}
	for _, i := range all {
		due <- i
	}
	close(due)
	done.Wait()
}

func iface(service string) string { return "com.example." + service }

// byInterface has a provider be a node below its interface. A change is another node, after which
// the one before goes, as when Dubbo exports a service anew.
type byInterface struct{ nodes sync.Map }

func (l *byInterface) put(s *server, t testing.TB, i registries.Instance) {
	p := url.Values{
		"application": {i.Service}, "interface": {iface(i.Service)}, "side": {"provider"}, "methods": {"get"}, "dubbo": {"2.0.2"}, "pid": {"1"},
		"timestamp": {fmt.Sprint(time.Now().UnixMilli())}, "weight": {fmt.Sprint(100 * i.Weight)},
	}
	if i.Unhealthy {
		p.Set("disabled", "true")
	}
	for k, v := range i.Metadata {
		p.Set("app."+k, v)
	}
	text := fmt.Sprintf("rest://%s:%d/%s?%s", i.Address, i.Port, iface(i.Service), p.Encode())
	node := fmt.Sprintf("/dubbo/%s/providers/%s", iface(i.Service), url.QueryEscape(text))
	s.Create(t, node, []byte(i.Address), true)
	if before, ok := l.nodes.Swap(i.ID, node); ok && before != node {
		s.Delete(t, before.(string))
	}
}

func (l *byInterface) remove(s *server, t testing.TB, i registries.Instance) {
	if node, ok := l.nodes.LoadAndDelete(i.ID); ok {
		s.Delete(t, node.(string))
	}
}

// byApplication has an instance be a node below its application, and what it serves one of its
// revision.
type byApplication struct{}

func (byApplication) node(i registries.Instance) string {
	return "/services/" + i.Service + "/" + i.ID
}

func (l byApplication) put(s *server, t testing.TB, i registries.Instance) {
	revision := fmt.Sprintf("r%d", i.Port)
	s.Create(t, "/dubbo/metadata/"+i.Service+"/"+revision, text(t, map[string]any{
		"app": i.Service, "revision": revision, "services": map[string]any{
			iface(i.Service) + ":rest": map[string]any{
				"name": iface(i.Service), "protocol": "rest", "port": i.Port, "path": iface(i.Service),
				"params": map[string]string{"side": "provider"},
			},
		},
	}), false)
	metadata := map[string]string{
		"dubbo.endpoints": fmt.Sprintf(`[{"port":%d,"protocol":"rest"}]`, i.Port), "dubbo.metadata.revision": revision, "dubbo.metadata.storage-type": "remote",
		"weight": fmt.Sprint(100 * i.Weight), "timestamp": fmt.Sprint(time.Now().UnixMilli()),
	}
	for k, v := range i.Metadata {
		metadata["app."+k] = v
	}
	s.Set(t, l.node(i), text(t, map[string]any{
		"name": i.Service, "id": i.ID, "address": i.Address, "port": i.Port, "enabled": !i.Unhealthy,
		"serviceType": "DYNAMIC", "registrationTimeUTC": time.Now().UnixMilli(),
		"payload": map[string]any{"@class": "org.apache.dubbo.registry.zookeeper.ZookeeperInstance", "id": nil, "name": i.Service, "metadata": metadata},
	}), true)
}

func text(t testing.TB, value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		t.Error(err)
	}
	return b
}

func (l byApplication) remove(s *server, t testing.TB, i registries.Instance) { s.Delete(t, l.node(i)) }

// spoiled is one whose records can be spoiled.
type spoiled struct{ *server }

func (s *spoiled) Spoil(t testing.TB, i registries.Instance) string {
	t.Helper()
	node := byApplication{}.node(i)
	s.Set(t, node, []byte(`{"name": "web", "address": "127.0.0.1", "port": "http"}`), true)
	return "zookeeper:" + node + ":0:0: error: is no such JSON"
}
