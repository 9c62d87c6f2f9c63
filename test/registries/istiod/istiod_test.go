// Package istiod_test measures what it costs istiod to serve a registry that it doesn't read:
// somebody writes a ServiceEntry of each service to the API server, anew when an instance of it
// changes, as what users have to bridge registries does. What reads the registry is not in the
// figures.
package istiod_test

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kube"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

func TestMain(m *testing.M) { registries.Main(m) }

func host(service string) string { return service + ".example" }

func TestChanges(t *testing.T) {
	need.All(t)
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Kubectl(t, "create", "namespace", "istio-system")
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	entries := objects.Resource(schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "serviceentries"}).Namespace("default")
	registries.Peer{
		Name: "istiod, by ServiceEntries", Server: &server{Cluster: c, entries: entries, services: map[string]*service{}}, Besides: c.PIDs(), Host: host,
		Start: func(t testing.TB) (string, int) {
			i := kube.StartIstiod(t, c)
			return i.XDS, i.PID()
		},
	}.Changes(t)
}

// server is the API server, and who writes what the registry has there.
type server struct {
	*kube.Cluster
	entries dynamic.ResourceInterface

	mu       sync.Mutex
	services map[string]*service
}

// service is what is written of one.
type service struct {
	mu        sync.Mutex
	there     bool
	instances map[string]registries.Instance
}

func (s *server) of(name string) *service {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.services[name] == nil {
		s.services[name] = &service{instances: map[string]registries.Instance{}}
	}
	return s.services[name]
}

// Put writes the entry of each instance's service once.
func (s *server) Put(t testing.TB, all ...registries.Instance) {
	t.Helper()
	byService := map[string][]registries.Instance{}
	for _, i := range all {
		byService[i.Service] = append(byService[i.Service], i)
	}
	for name, changed := range byService {
		s.change(t, name, func(instances map[string]registries.Instance) {
			for _, i := range changed {
				instances[i.ID] = i
			}
		})
	}
}

// Remove takes instances out of their services' entries.
func (s *server) Remove(t testing.TB, all ...registries.Instance) {
	t.Helper()
	for _, i := range all {
		s.change(t, i.Service, func(instances map[string]registries.Instance) { delete(instances, i.ID) })
	}
}

func (s *server) change(t testing.TB, name string, do func(map[string]registries.Instance)) {
	t.Helper()
	of := s.of(name)
	of.mu.Lock()
	defer of.mu.Unlock()
	do(of.instances)
	var endpoints []any
	for _, i := range of.instances {
		endpoints = append(endpoints, map[string]any{"address": i.Address, "weight": int64(i.Weight), "ports": map[string]any{"http": int64(i.Port)}})
	}
	slices.SortFunc(endpoints, func(a, b any) int {
		return slices.Compare([]byte(a.(map[string]any)["address"].(string)), []byte(b.(map[string]any)["address"].(string)))
	})
	entry := map[string]any{
		"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": map[string]any{"name": name, "namespace": "default"},
		"spec": map[string]any{
			"hosts": []any{host(name)}, "resolution": "STATIC", "location": "MESH_INTERNAL",
			"ports":     []any{map[string]any{"number": int64(80), "name": "http", "protocol": "HTTP"}},
			"endpoints": endpoints,
		},
	}
	var err error
	if !of.there {
		_, err = s.entries.Create(t.Context(), &unstructured.Unstructured{Object: entry}, metav1.CreateOptions{})
	} else {
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"spec": map[string]any{"endpoints": endpoints}}); err == nil {
			_, err = s.entries.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	}
	if of.there = true; err != nil {
		t.Error(err)
	}
}

func (s *server) Stop(testing.TB)    { s.Down() }
func (s *server) Start(t testing.TB) { s.Up(t) }
