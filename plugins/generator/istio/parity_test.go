package istio_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/internal/casetest"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// exempt are the cases whose resources need not all be equal in every field, with the reason.
var exempt = map[string]string{}

type kind struct {
	short, url string
	message    func() proto.Message
}

func kindsOfResources() []kind {
	return []kind{
		{"cds", encode.ClusterType, func() proto.Message { return &clusterv3.Cluster{} }},
		{"eds", encode.EndpointType, func() proto.Message { return &endpointv3.ClusterLoadAssignment{} }},
		{"lds", encode.ListenerType, func() proto.Message { return &listenerv3.Listener{} }},
		{"rds", encode.RouteType, func() proto.Message { return &routev3.RouteConfiguration{} }},
		{"ecds", encode.ExtensionType, func() proto.Message { return &corev3.TypedExtensionConfig{} }},
	}
}

// TestParity: what proxies get is what istiod gave them, in every field, in all cases but those
// that are exempt.
func TestParity(t *testing.T) {
	dir := casetest.Dir(t)
	found, err := os.ReadDir(dir)
	if err != nil || len(found) == 0 {
		t.Fatalf("no case in %s: %v", dir, err)
	}
	left := maps.Clone(exempt)
	for _, f := range found {
		if left[f.Name()] != "" {
			delete(left, f.Name())
			continue
		}
		t.Run(f.Name(), func(t *testing.T) {
			c := casetest.Load(t, filepath.Join(dir, f.Name()))
			h := plugintest.Start(t, istio.Plugin(), nil)
			h.Commit(c.Rows...)
			equal, all := 0, 0
			for _, p := range c.Proxies {
				a, b := score(t, h, p)
				equal, all = equal+a, all+b
			}
			if equal < all || all == 0 {
				t.Errorf("%d of %d resources are equal", equal, all)
			}
			for _, f := range h.Faults() {
				t.Errorf("fault: %s: %s", f.What, f.Reason)
			}
		})
	}
	for name := range left {
		t.Errorf("%s is exempt, and no case of %s", name, dir)
	}
}

// score compares all that a proxy gets with what is expected.
func score(t *testing.T, h *plugintest.Harness, p casetest.Proxy) (equal, all int) {
	t.Helper()
	connection := attach(t, h, p)
	for _, k := range kindsOfResources() {
		want := p.Expected[k.short]
		var names []string
		if k.short == "eds" || k.short == "rds" {
			if names = slices.Sorted(maps.Keys(want)); len(names) == 0 {
				continue
			}
		}
		if k.short == "ecds" {
			names = slices.Sorted(maps.Keys(want))
			for _, n := range slices.Clone(names) {
				names = append(names, n+casetest.PluginMark)
			}
			if len(names) == 0 {
				continue
			}
		}
		got := unmarked(h.Resources(connection, k.url, names...))
		for _, name := range union(want, got) {
			all++
			if same(t, p.Name, k, name, want[name], got[name]) {
				equal++
			}
		}
	}
	return equal, all
}

// unmarked are the resources that there are, by names without the mark of WasmPlugins.
func unmarked(list map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for name, body := range list {
		if body != nil {
			out[strings.TrimSuffix(name, casetest.PluginMark)] = body
		}
	}
	return out
}

func attach(t *testing.T, h *plugintest.Harness, p casetest.Proxy) uint64 {
	t.Helper()
	node, err := proto.Marshal(p.Node)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &sdk.Proxy{Node: node}
	for _, k := range kindsOfResources() {
		proxy.Types = append(proxy.Types, k.url)
	}
	h.Attach(proxy)
	return proxy.Connection
}

func same(t *testing.T, proxy string, k kind, name string, want any, got []byte) bool {
	t.Helper()
	switch {
	case want == nil:
		t.Logf("%s %s %s: extra", proxy, k.short, name)
		return false
	case got == nil:
		t.Logf("%s %s %s: missing", proxy, k.short, name)
		return false
	}
	m := k.message()
	if err := proto.Unmarshal(got, m); err != nil {
		t.Fatal(err)
	}
	v, err := casetest.JSON(m)
	if err != nil {
		t.Fatal(err)
	}
	if casetest.Equal(want, v) {
		return true
	}
	t.Logf("%s %s %s:\n  %s", proxy, k.short, name, strings.Join(casetest.Differences(want, v, 5), "\n  "))
	return false
}

func union(a map[string]any, b map[string][]byte) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}
