package misbehave

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"
)

// world is a control plane with rogues, an Envoy whose traffic must not suffer, and clients that
// the rogue generators serve.
type world struct {
	carrier  *carrier
	rogues   []entry
	dir, tmp string
	port     int
	backends map[string]*mesh.Backend
	plane    *mesh.Plane
	envoy    *envoy.Envoy
	traffic  *mesh.Traffic
	streams  map[string]*stream
}

func newWorld(t *testing.T, c *carrier, rogues []entry) *world {
	t.Helper()
	w := &world{
		carrier: c, rogues: rogues,
		dir: t.TempDir(), tmp: mesh.RuntimeDir(t), port: wait.Port(t), streams: map[string]*stream{},
		backends: map[string]*mesh.Backend{"a": mesh.NewBackend(t, "a"), "b": mesh.NewBackend(t, "b")},
	}
	t.Setenv("TMPDIR", w.tmp)
	w.configure(t, "a")
	w.compile(t)
	w.plane = mesh.Start(t, c.program, w.dir, "--plugins", plugins(t, c, w.rogues), "--holdMax", "3s", "--debounceMax", "1s")
	w.plane.Ready(t)
	at := wait.Address(t)
	w.envoy = envoy.Start(t, "client", at, w.plane.Bootstrap(t, "--name", "client", "--namespace", "test", "--admin", at,
		"--type", "sidecar", "--ip", "127.0.0.20", "--labels", "app=client", "--interception", "NONE"))
	w.envoy.Ready(t)
	w.answers(t, "a")
	w.traffic = mesh.NewTraffic(t, w.target())
	return w
}

// compile starts one rogue alone, so that its module is compiled once and not by all at once.
func (w *world) compile(t *testing.T) {
	t.Helper()
	first := entries(w.carrier)[:1]
	plane := mesh.Start(t, w.carrier.program, w.dir, "--plugins", plugins(t, w.carrier, first))
	defer plane.Kill()
	plane.Ready(t)
	wait.For(t, "the first rogue has failed", func() error {
		if p := plane.Plugins(t)[first[0].name]; p.LastError == "" {
			return fmt.Errorf("%+v", p)
		}
		return nil
	})
}

func (w *world) target() mesh.Target {
	return mesh.Target{Address: fmt.Sprintf("127.0.0.1:%d", w.port), Host: "web.example", Path: "/"}
}

const configuration = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: test}
spec:
  hosts: [web.example]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: %d, name: http, protocol: HTTP}]
  endpoints:
  - {address: 127.0.0.1, ports: {http: %d}, labels: {version: a}}
  - {address: 127.0.0.1, ports: {http: %d}, labels: {version: b}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: test}
spec:
  host: web.example
  subsets:
  - {name: a, labels: {version: a}}
  - {name: b, labels: {version: b}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: test}
spec:
  hosts: [web.example]
  http:
  - route:
    - destination: {host: web.example, subset: %s}
`

const cursed = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cursed, namespace: test}
spec:
  hosts: [nowhere.example]
  http:
  - route:
    - destination: {host: nowhere.example}
`

// configure sends all requests to one backend.
func (w *world) configure(t *testing.T, to string) {
	t.Helper()
	w.place(t, "web.yaml", fmt.Sprintf(configuration, w.port, w.backends["a"].Port, w.backends["b"].Port, to))
}

// curse adds the row that kills a plugin.
func (w *world) curse(t *testing.T) {
	t.Helper()
	w.place(t, "cursed.yaml", cursed)
}

// place writes a file beside and renames it.
func (w *world) place(t *testing.T, name, text string) {
	t.Helper()
	beside := filepath.Join(t.TempDir(), "new")
	if err := os.WriteFile(beside, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, filepath.Join(w.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// answers waits until one backend answers.
func (w *world) answers(t *testing.T, name string) {
	t.Helper()
	wait.For(t, "requests are answered by "+name, func() error {
		if got := w.target().Shares(context.Background(), 5); got[name] != 5 {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
}

const cds = "type.googleapis.com/envoy.config.cluster.v3.Cluster"

// stream is an xDS client that a rogue generator serves.
type stream struct {
	close func()
	mu    sync.Mutex
	names []string
}

func (s *stream) get() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names
}

// connect opens a stream for each rogue generator, which selects it by its metadata.
func (w *world) connect(t *testing.T) {
	t.Helper()
	for _, e := range w.rogues {
		if e.kind == "generator" {
			wait.For(t, e.name+" has been ready", func() error {
				if p := w.plane.Plugins(t)[e.name]; p.Plugin == "" {
					return fmt.Errorf("%+v", p)
				}
				return nil
			})
			w.streams[e.name] = w.open(t, e.name)
		}
	}
}

func (w *world) open(t *testing.T, rogue string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := grpc.NewClient(w.plane.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ads, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev3.Node{
		Id:       "sidecar~127.0.0.30~" + rogue + ".test~test.svc.cluster.local",
		Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"ROGUE": structpb.NewStringValue(rogue)}},
	}
	if err := ads.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: cds}); err != nil {
		t.Fatal(err)
	}
	s := &stream{}
	ended := make(chan struct{})
	go func() { defer close(ended); s.read(t, ads) }()
	s.close = sync.OnceFunc(func() { cancel(); <-ended; _ = conn.Close() })
	t.Cleanup(s.close)
	return s
}

// read acknowledges what comes, until the stream ends.
func (s *stream) read(t *testing.T, ads discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient) {
	for {
		m, err := ads.Recv()
		if err != nil {
			return
		}
		names := mesh.Names(t, m.Resources)
		s.mu.Lock()
		s.names = slices.Clone(names)
		s.mu.Unlock()
		if err := ads.Send(&discoveryv3.DiscoveryRequest{TypeUrl: m.TypeUrl, VersionInfo: m.VersionInfo, ResponseNonce: m.Nonce}); err != nil {
			return
		}
	}
}
