package xds_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) { mesh.Main(&program, m.Run) }

// server is a control plane that answers others: what they ask for stands in files of a folder.
type server struct {
	*mesh.Plane
	dir string
}

// serving is its set of plugins. Callers need no identity, for they connect in plain text, and
// whatever its files lose is let through.
const serving = `
plugins:
  - {name: files, kind: config, builtin: config/file, onLoss: apply}
  - {name: mesh, kind: config, builtin: config/mesh}
  - {name: api, kind: generator, builtin: generator/api, select: {generator: api}, config: {authentication: false}}
`

// newServer starts one with objects: files' names and texts.
func newServer(t *testing.T, objects map[string]string, args ...string) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	for name, text := range objects {
		s.put(t, name, text)
	}
	plugins := filepath.Join(t.TempDir(), "plugins.yaml")
	write(t, plugins, serving)
	s.Plane = mesh.Start(t, program, s.dir, append([]string{"--plugins", plugins}, args...)...)
	s.Ready(t)
	return s
}

// put replaces a file of its folder at once.
func (s *server) put(t *testing.T, name, text string) {
	t.Helper()
	next := filepath.Join(s.dir, ".next")
	write(t, next, text)
	if err := os.Rename(next, filepath.Join(s.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// says waits until it answers with so many ServiceEntries: files are read when their folder says
// that they changed.
func (s *server) says(t *testing.T, many int) {
	t.Helper()
	conn, err := grpc.NewClient(s.XDS, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	metadata, err := structpb.NewStruct(map[string]any{"GENERATOR": "api"})
	if err != nil {
		t.Fatal(err)
	}
	first := &discovery.DiscoveryRequest{
		Node: &corev3.Node{Id: "waypoint~127.0.0.1~asking.shop~shop.svc.cluster.local", Metadata: metadata}, TypeUrl: "networking.istio.io/v1/ServiceEntry",
	}
	wait.For(t, fmt.Sprintf("the server has %d entries", many), func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
		if err == nil {
			err = stream.Send(first)
		}
		if err != nil {
			return err
		}
		answer, err := stream.Recv()
		if err == nil && len(answer.Resources) != many {
			err = fmt.Errorf("it has %d", len(answer.Resources))
		}
		return err
	})
}

func (s *server) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// entry is a ServiceEntry of a host HOST.example.
func entry(name, host string) string {
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %s, namespace: shop}\nspec: "+
		"{hosts: [%s.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}\n---\n", name, host)
}

// source is an entry of plugins.yaml that reads a server.
func source(config string) string {
	return fmt.Sprintf("  - {name: source, kind: config, builtin: config/xds, limits: {sync: 4m}, config: {%s}}\n", config)
}

// set writes a plugins.yaml: the default set, and more.
func set(t *testing.T, more string) string {
	t.Helper()
	text, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	write(t, file, string(text)+more)
	return file
}

// plane starts a control plane, with files in a folder of its own. It isn't waited for.
func plane(t *testing.T, plugins string) *mesh.Plane {
	t.Helper()
	return mesh.Start(t, program, t.TempDir(), "--plugins", plugins)
}

const (
	clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	sidecar     = "--ip 127.0.0.5 --namespace shop --interception NONE"
)

// hasCluster waits until a sidecar has, or has not, the cluster of a host HOST.example.
func hasCluster(t *testing.T, p *mesh.Plane, host string, there bool) {
	t.Helper()
	name, bootstrap := "outbound|80||"+host+".example", p.Bootstrap(t, strings.Fields(sidecar)...)
	wait.For(t, fmt.Sprintf("cluster %s: %v", name, there), func() error {
		for _, got := range mesh.Names(t, p.Fetch(t, bootstrap, clusterType)) {
			if got == name {
				if there {
					return nil
				}
				return fmt.Errorf("it is there")
			}
		}
		if there {
			return fmt.Errorf("it is not there")
		}
		return nil
	})
}

// shows waits until `coxswain config` has all words in a line, or not.
func shows(t *testing.T, p *mesh.Plane, there bool, words ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("coxswain config says %q: %v", words, there), func() error {
		out, err := exec.Command(program, "config", "--addr", p.HTTP).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			found := true
			for _, word := range words {
				found = found && strings.Contains(line, word)
			}
			if found && there {
				return nil
			}
			if found {
				return fmt.Errorf("it says %s", line)
			}
		}
		if there {
			return fmt.Errorf("it says:\n%s", out)
		}
		return nil
	})
}

func logged(t *testing.T, p *mesh.Plane, what string) {
	t.Helper()
	wait.For(t, "the log says "+what, func() error {
		if !strings.Contains(p.Log(), what) {
			return fmt.Errorf("%s", p.LastLines(5))
		}
		return nil
	})
}

// plugin is a built-in one as a process.
func plugin(name string) plugintest.Target {
	return plugintest.Process(process.Command{Path: program, Args: []string{"plugin", name}})
}
