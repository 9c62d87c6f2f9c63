package etcd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/test/etcd"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// shop fills an etcd: services with instances, routes to some of them.
func shop(t *testing.T, s *etcd.Server) {
	t.Helper()
	for i := range 40 {
		name := fmt.Sprintf("s-%d", i)
		for j := range 3 {
			instance(t, s, name, fmt.Sprint(j), fmt.Sprintf("10.0.%d.%d", i, j+1), 8080)
		}
		object(t, s, "VirtualService", name, fmt.Sprintf("{hosts: [%[1]s.example], http: [{match: [{uri: {prefix: "+
			"/a}}], route: [{destination: {host: %[1]s.example}}], timeout: 3s}, {route: [{destination: {host: "+
			"%[1]s.example}}]}]}", name))
	}
	object(t, s, "ServiceEntry", "outside", "{hosts: [outside.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}")
}

// TestReplicas: what comes of one etcd is the same in every replica, byte by byte. A proxy with
// delta xDS that loses its control plane and connects to another one on the same etcd is sent
// nothing that it has. One with state-of-the-world xDS, which has no way to say what it has, makes
// nothing anew of what it is sent.
func TestReplicas(t *testing.T) {
	t.Parallel()
	envoy.Binary(t) // or skip
	s := etcd.Start(t)
	shop(t, s)
	plugins := set(t, entries(s.Address))
	one := plane(t, plugins)
	hasAddresses(t, s, "outside")
	const added = "cluster_manager.cluster_added"
	for _, protocol := range []string{"sotw", "delta"} {
		two := plane(t, plugins)
		t.Run(protocol, func(t *testing.T) {
			same(t, one, two)
			var control atomic.Pointer[string]
			control.Store(&one.XDS)
			dir, err := os.MkdirTemp("", "etcd-") // paths of sockets are short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			relay := mesh.NewRelay(t, filepath.Join(dir, "xds"), func() string { return *control.Load() })
			admin := wait.Address(t)
			bootstrap, err := exec.Command(program,
				append(strings.Fields("bootstrap --protocol "+protocol+" "+sidecar), "--xds", relay.Address, "--admin", admin)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			e := envoy.Start(t, "shopper", admin, bootstrap)
			e.Ready(t)
			first, before := relay.Down(), e.Stats(t)
			control.Store(&two.XDS)
			one.Kill()
			wait.For(t, "it is connected again", func() error {
				text, err := two.Get("/debug/streams")
				if err == nil && !strings.Contains(text, "envoy.shop") {
					err = fmt.Errorf("%s", text)
				}
				return err
			})
			instance(t, s, "last-"+protocol, "0", "10.1.0.1", 8081)
			wait.For(t, "what is new comes", func() error {
				if now := e.Stats(t); now[added] <= before[added] {
					return fmt.Errorf("%d clusters, %d before", now[added], before[added])
				}
				return nil
			})
			again := relay.Down() - first
			t.Logf("%d bytes at first, %d after the change of control planes", first, again)
			if protocol == "delta" && again > 8192 { // a cluster, its endpoints, a route configuration
				t.Errorf("%d bytes at first, and %d for one service more", first, again)
			}
			now := e.Stats(t)
			for name, more := range map[string]int{added: 1, "cluster_manager.cluster_modified": 0, "listener_manager.listener_modified": 0} {
				if now[name] != before[name]+more {
					t.Errorf("%s was %d and is %d", name, before[name], now[name])
				}
			}
		})
		one = two
	}
}

// same checks that two replicas answer the same, byte by byte.
func same(t *testing.T, one, two *mesh.Plane) {
	t.Helper()
	for _, kind := range []string{clusterType, "type.googleapis.com/envoy.config.listener.v3.Listener"} {
		var sets [2][]string
		for i, p := range []*mesh.Plane{one, two} {
			for _, r := range p.Fetch(t, p.Bootstrap(t, strings.Fields(sidecar)...), kind) {
				sets[i] = append(sets[i], text(r))
			}
			slices.Sort(sets[i])
		}
		if len(sets[0]) < 10 && kind == clusterType || !slices.Equal(sets[0], sets[1]) {
			t.Errorf("of %s one has %d resources, the other %d, and they differ", kind, len(sets[0]), len(sets[1]))
		}
	}
}

func text(r *anypb.Any) string { return string(r.Value) }
