package istio

import (
	"bytes"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	extensions "istio.io/api/extensions/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

const pluginName = "extensions.istio.io/trafficextension/default.p" + config.PluginMark

// TestDiscoveredExtensions: configurations are answered to those that ask for them, told again when
// they change, and not to proxies that they aren't for.
func TestDiscoveredExtensions(t *testing.T) {
	w := newWorld(t)
	plugin := func(url string) { // of WasmPlugin
		w.commit(rows(config.WasmPlugins, spec(t, "default/p", &extensions.WasmPlugin{}, `{url: "`+url+`", selector: {matchLabels: {app: a}}}`)))
	}
	plugin("oci://r/p:1")
	w.attach(1, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{"app": "a"}}))
	w.attach(2, proxy(sidecarID, nil, map[string]any{"LABELS": map[string]any{"app": "b"}}))
	got := w.get(1, encode.ExtensionType, pluginName, "nobody")
	first := got[pluginName]
	var m core.TypedExtensionConfig
	if err := proto.Unmarshal(first, &m); err != nil || m.Name != pluginName {
		t.Fatalf("%v: %v", &m, err)
	}
	if body, ok := got["nobody"]; !ok || body != nil {
		t.Error("an unknown name is known to be absent")
	}
	if body := w.get(2, encode.ExtensionType, pluginName)[pluginName]; body != nil {
		t.Error("it isn't for the other proxy")
	}
	listeners := w.get(1, encode.ListenerType)
	view := w.out.placed[1][encode.ExtensionType]
	plugin("oci://r/p:2")
	if w.out.placed[1][encode.ExtensionType] != view {
		t.Error("what changes in an extension moves nobody")
	}
	if second := w.out.resources(view)[pluginName]; second == nil || bytes.Equal(first, second) {
		t.Error("a change is told")
	}
	for name, body := range w.out.resources(w.out.placed[1][encode.ListenerType]) {
		if !bytes.Equal(body, listeners[name]) {
			t.Errorf("%s changed with the code of an extension", name)
		}
	}
	if bytes.Equal(listeners["virtualInbound"], w.get(2, encode.ListenerType)["virtualInbound"]) {
		t.Error("listeners differ in the filter")
	}
}

func TestExtensionsOfPatches(t *testing.T) {
	w := newWorld(t)
	w.commit(rows(config.EnvoyFilters, spec(t, "default/f", &networking.EnvoyFilter{}, `
configPatches:
- {applyTo: EXTENSION_CONFIG, patch: {operation: ADD, value: {name: mine, typed_config: {"@type": type.googleapis.com/google.protobuf.Empty}}}}`)))
	w.attach(1, proxy(sidecarID, nil, nil))
	if w.get(1, encode.ExtensionType, "mine")["mine"] == nil {
		t.Error("a patch adds a configuration")
	}
}
