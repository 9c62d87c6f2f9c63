package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/coxswain-mesh/coxswain/test/bench/usage"
)

// The mesh of scope: two sidecars for each namespace.
const (
	scopeNamespaces = 200
	scopeSidecars   = 400
)

// private is a service that only its own namespace sees.
const private = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: private, namespace: ns-07}
spec:
  hosts: [private.ns-07.example]
  exportTo: ["."]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 8080, name: http, protocol: HTTP}]
  endpoints: [{address: 10.250.0.%d}]
`

// scope returns what an edit costs that concerns one namespace of many: one service more there, and
// another address for it.
func scope(ctx context.Context, c config) (string, error) {
	s, f, err := running(ctx, c, load{"S", 1000, scopeSidecars, "sotw"}, scopeNamespaces)
	if err != nil {
		return "", err
	}
	defer s.stop()
	defer f.Close()
	f.Rest(2 * time.Second)
	out := fmt.Sprintf("%d sidecars in %d namespaces; in one of these\n", scopeSidecars, scopeNamespaces)
	for i, what := range []string{"one service more", "another address for it"} {
		n, a, err := f.Concerns(func() error {
			return os.WriteFile(filepath.Join(s.dir, "private.yaml"), fmt.Appendf(nil, private, i+1), 0o644)
		}, 2*time.Second)
		if err != nil {
			return "", err
		}
		out += fmt.Sprintf("  %s: %d sidecars got %d messages, %d KB\n", what, n, a.Messages, a.Bytes/1000)
	}
	return out, nil
}

// reading returns what it takes from start to ready, before anybody connects.
func reading(ctx context.Context, c config) (string, error) {
	var out string
	for _, m := range []struct {
		name            string
		services, every int
	}{{"W2 (1000 services, 200 other resources)", 1000, 10}, {"10,000 resources (5000 services, 5000 others)", 5000, 2}} {
		l := load{"R", m.services, 0, "sotw"}
		if err := fill(c, l); err != nil {
			return "", err
		}
		cmd := exec.Command(c.tool("meshgen"), "-dir", c.path("mesh", l.mesh), "-services", fmt.Sprint(m.services),
			"-endpoints", "10", "-every", fmt.Sprint(m.every))
		if b, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("meshgen: %w: %s", err, b)
		}
		began := time.Now()
		s, err := start(ctx, c, coxswain, l)
		if err != nil {
			return "", err
		}
		ready := time.Since(began)
		out += fmt.Sprintf("%s: ready after %.2f s, %.2f s of CPU in all processes\n", m.name, ready.Seconds(), usage.CPU(s.cmd.Process.Pid))
		s.stop()
	}
	return out, nil
}
