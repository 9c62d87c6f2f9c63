package kube_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// stock is a mesh for Envoys that are not Istio's build and have no agent: without mutual TLS by
// default, and without the filters that only that build has.
func stock() string {
	var removals []string
	for filter, names := range map[string][]string{
		"HTTP_FILTER":    {"istio.alpn", "istio.stats", "istio.metadata_exchange"},
		"NETWORK_FILTER": {"istio.stats", "istio.metadata_exchange"},
	} {
		for _, name := range names {
			match := fmt.Sprintf("{listener: {filterChain: {filter: {name: %s}}}}", name)
			if filter == "HTTP_FILTER" {
				match = fmt.Sprintf("{listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: %s}}}}}", name)
			}
			removals = append(removals, fmt.Sprintf("{applyTo: %s, match: %s, patch: {operation: REMOVE}}", filter, match))
		}
	}
	slices.Sort(removals)
	return documents(`{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}`,
		settings("istio", "{enableAutoMtls: false}", ""),
		"{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: plain, namespace: istio-system}, spec: {mtls: {mode: DISABLE}}}",
		fmt.Sprintf(
			"{apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, metadata: {name: stock, namespace: istio-system}, spec: {configPatches: [%s]}}",
			strings.Join(removals, ", "),
		))
}

// hosted is a VirtualService at the gateway.
const hosted = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s, namespace: shop}
spec: {hosts: [%s], gateways: [edge], http: [{timeout: %ds, route: [{destination: {host: web.shop.svc.cluster.local, port: {number: 80}}}]}]}`

// TestTakesOver: istiod is stopped, and the control plane started on the same API server in its
// place, while a gateway and a sidecar stay. No request fails, they make no listener and no cluster
// anew, have the same routes and endpoints, and what changes afterwards arrives.
func TestTakesOver(t *testing.T) {
	need.All(t)
	envoy.Binary(t) // or skip
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(namespace, node))
	c.Apply(t, stock())
	c.Apply(t, documents(gateway, service, pod("web-1", first), slice("web-1", first),
		fmt.Sprintf(hosted, "one", "z.example, c.a.example", 1),
		fmt.Sprintf(hosted, "two", "a.example, b.example", 2)))
	for _, name := range []string{"api", "db"} { // each a second younger
		began := time.Now().Unix()
		wait.For(t, "another second", func() error {
			if time.Now().Unix() == began {
				return errors.New("it is the same")
			}
			return nil
		})
		c.Apply(t, strings.ReplaceAll(others, "NAME", name))
	}
	istiod := kube.StartIstiod(t, c, "PILOT_ENABLE_METADATA_EXCHANGE=false")

	var control atomic.Pointer[string]
	control.Store(&istiod.XDS)
	dir := folder(t)
	xds := mesh.NewRelay(t, filepath.Join(dir, "xds"), func() string { return *control.Load() }).Address
	w := &world{cluster: c, pod: netns.NewPod(t, "edge", "10.244.0.1")}
	w.client = clientOf(w.pod)
	serve(t, w.pod, first)
	serve(t, w.pod, second)
	var proxies []*envoy.Envoy
	for i, args := range [][]string{
		{"--type", "router", "--name", "edge", "--ip", w.pod.Address, "--labels", "app=edge"},
		{"--name", "shopper", "--ip", "10.244.0.5"},
	} {
		admin := fmt.Sprintf("unix:%s/admin%d", dir, i)
		bootstrap, err := exec.Command(program, append([]string{"bootstrap", "--xds", xds, "--admin", admin, "--namespace", "shop"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		p := envoy.InPod(t, w.pod, 1337, admin, bootstrap)
		p.Ready(t)
		proxies = append(proxies, p)
	}
	w.always(t, first)

	stop := w.traffic(t)
	before := make([]map[string]int, len(proxies))
	dumps := make([]string, len(proxies))
	for i, p := range proxies {
		before[i], dumps[i] = p.Stats(t), dumpOf(t, p)
	}
	istiod.Stop()
	plane := mesh.Start(t, program, "", "--kubeconfig", c.Kubeconfig)
	plane.Ready(t)
	control.Store(&plane.XDS)
	for i, p := range proxies {
		wait.For(t, p.Name+" has heard of everything", func() error {
			now := p.Stats(t)
			for name, n := range before[i] {
				if updates.MatchString(name) && n > 0 && now[name] <= n {
					return fmt.Errorf("%s is %d", name, now[name])
				}
			}
			return nil
		})
		for name, n := range p.Stats(t) {
			if anew.MatchString(name) && n != before[i][name] {
				t.Errorf("%s: %s was %d and is %d", p.Name, name, before[i][name], n)
			}
		}
		if now := dumpOf(t, p); now != dumps[i] {
			t.Errorf("%s holds something else: %s", p.Name, differ(dumps[i], now))
		}
	}
	c.Apply(t, documents(pod("web-2", second), slice("web-2", second)))
	w.always(t, second)
	stop()
}

var (
	// updates count answers that a proxy took, anew what it made because of them.
	updates = regexp.MustCompile(`^(cluster_manager\.cds|listener_manager\.lds|http\..*\.rds\..*|cluster\..*)\.update_success$`)
	anew    = regexp.MustCompile(
		`^listener_manager\.listener_(added|modified|removed|create_.*)$|^cluster_manager\.cluster_(added|modified|removed)$|update_rejected$`,
	)
)

// dumpOf is what an Envoy got by xDS, without versions and times: a line each.
func dumpOf(t *testing.T, e *envoy.Envoy) string {
	t.Helper()
	var dump struct {
		Configs []map[string]any
	}
	if err := json.Unmarshal([]byte(e.ConfigDump(t)), &dump); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, config := range dump.Configs {
		for kind, list := range config {
			resources, ok := list.([]any)
			if !ok || !strings.HasPrefix(kind, "dynamic_") {
				continue
			}
			for _, r := range resources {
				forget(r)
				line, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, kind+" "+string(line))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// forget removes versions and times, and the order of a virtual host's names, which says nothing.
func forget(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "version_info")
		delete(v, "last_updated")
		if names, ok := v["domains"].([]any); ok {
			slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
		for _, of := range v {
			forget(of)
		}
	case []any:
		for _, of := range v {
			forget(of)
		}
	}
}

// differ are the first lines that two texts have alone.
func differ(a, b string) string {
	was, is := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			return "\n" + was[i] + "\n" + is[i]
		}
	}
	return fmt.Sprintf("%d lines, and %d", len(was), len(is))
}
