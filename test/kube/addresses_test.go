package kube_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// statuses are the addresses in the status of ServiceEntries: NAME, then HOST=ADDRESS of each.
func statuses(t *testing.T, c *kube.Cluster) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	text := c.Kubectl(t, "get", "serviceentries", "-n", "shop", "-o",
		`jsonpath={range .items[*]}{.metadata.name}{range .status.addresses[*]} {.host}={.value}{end}{"\n"}{end}`)
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			out[fields[0]] = fields[1:]
		}
	}
	return out
}

// TestAddresses: ServiceEntries without addresses are given some by two replicas at once, each
// address once. By `make test-all`: the hosts are those that an istiod gives some to, and an istiod
// beside them keeps what there is.
func TestAddresses(t *testing.T) {
	t.Parallel()
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(system, namespace))
	const ports = ", ports: [{number: 80, name: http, protocol: HTTP}]}"
	all := []string{
		entry("names", "{hosts: [a.example, b.example], resolution: DNS"+ports),
		entry("static", "{hosts: [static.example], resolution: STATIC, endpoints: [{address: 192.0.2.1}]"+ports),
		entry("robin", "{hosts: [robin.example], resolution: DNS_ROUND_ROBIN"+ports),
		entry("wherever", "{hosts: [none.example], resolution: NONE"+ports),
		entry("own", "{hosts: [own.example], resolution: DNS, addresses: [240.240.0.1]"+ports),
		entry("wild", "{hosts: ['*.wild.example'], resolution: STATIC, endpoints: [{address: 192.0.2.1}]"+ports),
		entry("asked", "{hosts: ['*.asked.example'], resolution: DYNAMIC_DNS, location: MESH_EXTERNAL"+ports),
		strings.Replace(entry("out", "{hosts: [out.example], resolution: DNS"+ports), "namespace: shop",
			"namespace: shop, labels: {networking.istio.io/enable-autoallocate-ip: 'false'}", 1),
	}
	for n := range 40 {
		all = append(all, entry(fmt.Sprintf("n%d", n), fmt.Sprintf("{hosts: [n%d.example], resolution: DNS%s", n, ports)))
	}
	c.Apply(t, documents(all...))
	given := func(want int) (hosts map[string]string) {
		t.Helper()
		wait.For(t, fmt.Sprintf("%d hosts have addresses", want), func() error {
			hosts = map[string]string{}
			where := map[string]string{}
			for name, list := range statuses(t, c) {
				for _, each := range list {
					host, address, _ := strings.Cut(each, "=")
					if ip, err := netip.ParseAddr(address); err != nil || where[address] != "" ||
						address == "240.240.0.1" || !(netip.MustParsePrefix("240.240.0.0/16").Contains(ip) ||
						netip.MustParsePrefix("2001:2::/48").Contains(ip)) {
						return fmt.Errorf("%s of %s is also that of %q; %v", address, name, where[address], err)
					}
					where[address] = name
					hosts[name+"/"+host] += address + " "
				}
			}
			if len(hosts) != want || len(where) != 2*want {
				return fmt.Errorf("there are %d with %d", len(hosts), len(where))
			}
			return nil
		})
		return hosts
	}
	var theirs map[string]string
	if need.Long() {
		istiod := kube.StartIstiod(t, c)
		theirs = given(45)
		istiod.Stop()
		for name := range theirs { // none of them are left
			entry, _, _ := strings.Cut(name, "/")
			c.Kubectl(t, "patch", "serviceentries", entry, "-n", "shop", "--subresource", "status", "--type", "merge", "-p", `{"status": {"addresses": null}}`)
		}
	}
	for range 2 {
		mesh.Start(t, program, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig).Ready(t)
	}
	ours := given(45)
	for name := range theirs {
		if ours[name] == "" {
			t.Errorf("an istiod gives %s to %s, and we none", theirs[name], name)
		}
	}
	if need.Long() {
		kube.StartIstiod(t, c)
	}
	c.Apply(t, entry("later", "{hosts: [later.example], resolution: DNS"+ports))
	now := given(46)
	for name, addresses := range ours {
		if now[name] != addresses {
			t.Errorf("%s had %s and has %s beside an istiod", name, addresses, now[name])
		}
	}
}
