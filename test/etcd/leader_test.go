package etcd_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/etcd"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const leaseKey = resources + "coordination.k8s.io/Lease/istio-system/istio-ip-autoallocate"

// hasAddresses waits until the giver of addresses has written the status of a ServiceEntry.
func hasAddresses(t *testing.T, s *etcd.Server, name string) {
	t.Helper()
	wait.For(t, name+" has addresses", func() error {
		var o struct {
			Status struct{ Addresses []struct{ Value string } }
		}
		r, err := s.Client.Get(t.Context(), resources+"networking.istio.io/ServiceEntry/shop/"+name)
		if err != nil || len(r.Kvs) == 0 {
			return fmt.Errorf("%v, %v", r, err)
		}
		if err := json.Unmarshal(r.Kvs[0].Value, &o); err != nil || len(o.Status.Addresses) != 2 {
			return fmt.Errorf("%s: %v", r.Kvs[0].Value, err)
		}
		return nil
	})
}

// holder is who holds the Lease.
func holder(t *testing.T, s *etcd.Server) string {
	t.Helper()
	r, err := s.Client.Get(t.Context(), leaseKey)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return ""
	}
	var lease struct {
		Spec struct{ HolderIdentity string }
	}
	if err := json.Unmarshal(r.Kvs[0].Value, &lease); err != nil {
		t.Fatal(err)
	}
	return lease.Spec.HolderIdentity
}

// TestLeader: of replicas on one etcd one at a time gives addresses to ServiceEntries: another one
// when the first dies, or its plugin is swapped; again after etcd was away and after the Lease was
// deleted. While etcd is away nobody leads.
func TestLeader(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	object(t, s, "ServiceEntry", "first", dns("first"))
	object(t, s, "ServiceEntry", "stays", dns("stays"))
	plugins := set(t, entries(s.Address))
	all := []*mesh.Plane{plane(t, plugins), plane(t, plugins)}
	entries := 0
	// leader waits until one leads, and gives an address.
	leader := func() (leads *mesh.Plane) {
		t.Helper()
		wait.For(t, "one leads", func() error {
			as := holder(t, s)
			i := slices.IndexFunc(all, func(p *mesh.Plane) bool { return as != "" && rules(p, as) })
			if i < 0 {
				return fmt.Errorf("%q has the Lease", as)
			}
			leads = all[i]
			return nil
		})
		entries++
		name := fmt.Sprintf("outside-%d", entries)
		object(t, s, "ServiceEntry", name, dns(name))
		hasAddresses(t, s, name)
		return leads
	}
	now := leader()
	for _, plugin := range []string{"addresses", "resources"} {
		if out, err := exec.Command(program, "plugins", "restart", plugin, "--addr", now.HTTP).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		now = leader()
	}
	now.Kill()
	all = slices.DeleteFunc(all, func(p *mesh.Plane) bool { return p == now })
	leader()
	all = append(all, plane(t, plugins))

	s.Delete(t, leaseKey)
	now = leader()
	as := holder(t, s)
	s.Down()
	wait.For(t, "it leads no more", func() error {
		if rules(now, as) {
			return fmt.Errorf("%s", now.LastLines(3))
		}
		return nil
	})
	s.Up(t)
	leader()
}

// rules reports whether a control plane's log says that it leads under a name.
func rules(p *mesh.Plane, as string) bool {
	leads := false
	for line := range strings.Lines(p.Log()) {
		if strings.Contains(line, "as="+as) {
			leads = !strings.Contains(line, "leads no more")
		}
	}
	return leads
}
