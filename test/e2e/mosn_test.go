package e2e

import (
	"os"
	"path/filepath"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const mosnSet = `
plugins:
- {name: files, kind: config, builtin: config/file}
- {name: serviceentry, kind: registry, builtin: registry/serviceentry}
- {name: istio, kind: generator, builtin: generator/istio}
- {name: mosn, kind: patch, builtin: patch/mosn, select: {labels: {proxy: mosn}}}
`

// TestMOSN: nodes that an entry selects get listeners that MOSN can use; others get Envoy's.
func TestMOSN(t *testing.T) {
	dir := t.TempDir()
	place(t, filepath.Join(dir, "plugins.yaml"), mosnSet)
	config := &configuration{dir: filepath.Join(dir, "config"), WebPort: wait.Port(t), V1: []*mesh.Backend{{Port: 1}}}
	if err := os.Mkdir(config.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	config.write(t, "web.yaml")
	plane := mesh.Start(t, program, config.dir, "--plugins", filepath.Join(dir, "plugins.yaml"))
	plane.Ready(t)
	for _, proxy := range []string{"mosn", "envoy"} {
		bootstrap := plane.Bootstrap(t, "--type", "sidecar", "--name", proxy, "--namespace", "test", "--ip", "10.0.0.1", "--labels", "proxy="+proxy)
		handed := 0
		for _, packed := range plane.Fetch(t, bootstrap, "type.googleapis.com/envoy.config.listener.v3.Listener") {
			var l listenerv3.Listener
			if err := packed.UnmarshalTo(&l); err != nil {
				t.Fatal(err)
			}
			if l.BindToPort == nil || l.BindToPort.Value {
				continue // virtualOutbound, virtualInbound
			}
			handed++
			m := l.ProtoReflect() // by reflection, because the field that MOSN reads is deprecated
			usable := m.Has(m.Descriptor().Fields().ByName("deprecated_v1")) && len(l.FilterChains) == 1 && l.DefaultFilterChain == nil
			if usable != (proxy == "mosn") {
				t.Errorf("%s gets %s: %v", proxy, l.Name, &l)
			}
		}
		if handed == 0 {
			t.Errorf("%s gets no listener that virtualOutbound hands connections to", proxy)
		}
	}
}
