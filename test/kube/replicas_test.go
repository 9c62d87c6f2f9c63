package kube_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// TestReplicas: what comes of the same state has the same version in every replica. A proxy with
// delta xDS that loses its control plane and connects to another one on the same API server is sent
// nothing that it has. One with state-of-the-world xDS, which has no way to say what it has, makes
// nothing anew of what it is sent.
func TestReplicas(t *testing.T) {
	t.Parallel()
	envoy.Binary(t) // or skip
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(namespace, node, system))
	objects := []string{gateway, service, pod("web-1", first), slice("web-1", first)}
	for i := range 40 {
		objects = append(objects, strings.ReplaceAll(others, "NAME", fmt.Sprintf("other-%d", i)))
	}
	c.Apply(t, documents(objects...))
	const added = "cluster_manager.cluster_added"
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) {
			one := mesh.Start(t, program, "", "--kubeconfig", c.Kubeconfig)
			one.Ready(t)
			var control atomic.Pointer[string]
			control.Store(&one.XDS)
			dir := folder(t)
			relay := mesh.NewRelay(t, filepath.Join(dir, "xds"), func() string { return *control.Load() })
			admin := "unix:" + filepath.Join(dir, "admin")
			bootstrap, err := exec.Command(program, "bootstrap", "--xds", relay.Address, "--admin", admin,
				"--namespace", "shop", "--protocol", protocol).Output()
			if err != nil {
				t.Fatal(err)
			}
			p := envoy.InPod(t, netns.NewPod(t, "shopper", "10.244.0.5"), 1337, admin, bootstrap)
			p.Ready(t)
			first, before := relay.Down(), p.Stats(t)

			two := mesh.Start(t, program, "", "--kubeconfig", c.Kubeconfig)
			two.Ready(t)
			control.Store(&two.XDS)
			one.Kill()
			wait.For(t, "it is connected again", func() error {
				text, err := two.Get("/debug/streams")
				if err == nil && !strings.Contains(text, "envoy.shop") {
					err = fmt.Errorf("%s", text)
				}
				return err
			})
			c.Apply(t, strings.NewReplacer("name: web", "name: last-"+protocol, "name: http, port: 80", "name: tcp, port: 5000").Replace(service))
			wait.For(t, "what is new comes", func() error {
				if now := p.Stats(t); now[added] <= before[added] {
					return fmt.Errorf("%d clusters, %d before", now[added], before[added])
				}
				return nil
			})
			again := relay.Down() - first
			t.Logf("%d bytes at first, %d after the change of control planes", first, again)
			if protocol == "delta" && again > 4096 { // a cluster, a listener, what frames the answers
				t.Errorf("%d bytes at first, and %d for one service more", first, again)
			}
			now := p.Stats(t)
			for name, more := range map[string]int{added: 1, "cluster_manager.cluster_modified": 0, "listener_manager.listener_modified": 0} {
				if now[name] != before[name]+more {
					t.Errorf("%s was %d and is %d", name, before[name], now[name])
				}
			}
		})
	}
}
