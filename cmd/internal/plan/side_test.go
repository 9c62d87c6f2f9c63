package plan

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
)

// mute is a control plane that never answers a proxy. A stream whose deadline it is told it ends
// at once.
type mute struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
}

func (mute) DeltaAggregatedResources(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	if _, ok := s.Context().Deadline(); !ok {
		<-s.Context().Done()
	}
	return nil
}

// TestSideHangs: where a control plane doesn't answer it is said which, to whom, and of what.
func TestSideHangs(t *testing.T) {
	const never, asked = "exec sleep 600\n", "asked as proxy web: "
	accepts := func(t *testing.T) (net.Listener, string) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		line := func(port string) string {
			return fmt.Sprintf(`echo '{"msg":"listening","port":"%s","address":"%s"}' >&2`, port, l.Addr()) + "\n"
		}
		return l, line("grpc") + line("http") + never
	}
	for name, c := range map[string]struct {
		patience time.Duration
		script   func(*testing.T) string
		want     string
	}{
		"never serves": {100 * time.Millisecond, func(*testing.T) string { return never },
			"it does not serve after 100ms (--timeout)"},
		"accepts no stream": {5 * time.Second, func(t *testing.T) string {
			_, script := accepts(t)
			return script
		}, asked + "connecting: no answer in 5s (--timeout)"},
		"answers no question": {5 * time.Second, func(t *testing.T) string {
			l, script := accepts(t)
			server := grpc.NewServer()
			discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, mute{})
			go func() { _ = server.Serve(l) }()
			t.Cleanup(server.Stop)
			return script
		}, asked + "type.googleapis.com/envoy.config.cluster.v3.Cluster: no answer in 5s (--timeout)"},
	} {
		t.Run(name, func(t *testing.T) {
			program, dir := filepath.Join(t.TempDir(), "program"), t.TempDir()
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script(t)), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Parallel() // no process starts while a program is being written
			s := Side{Flag: "--against", Program: program, Dir: dir, Environ: os.Environ()}
			_, _, err := s.answers(t.Context(), run{[]Proxy{{Node: &corev3.Node{Id: "web"}}}, c.patience, &bodies{}, nil})
			if want := "the control plane for --against " + dir + ": " + c.want; err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
		})
	}
}
