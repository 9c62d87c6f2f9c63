package istio_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio"
	"github.com/coxswain-mesh/coxswain/plugins/internal/casetest"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// TestReadme makes what the README's configuration makes.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := blocks(string(b))
	var set struct {
		Plugins []struct {
			Config json.RawMessage `json:"config"`
		} `json:"plugins"`
	}
	if err := yaml.Unmarshal([]byte(blocks["yaml plugins.yaml"]), &set); err != nil {
		t.Fatal(err)
	}
	h := plugintest.Start(t, istio.Plugin(), []byte(set.Plugins[0].Config))
	h.Commit(casetest.Rows(t, "README.md", []byte(blocks["yaml config"]))...)
	connection := attach(t, h, casetest.Proxy{Node: &core.Node{Id: "sidecar~10.40.0.9~client.default~default.svc.cluster.local"}})
	var got []string
	for _, k := range kindsOfResources() {
		if k.short == "cds" || k.short == "lds" {
			for _, name := range slices.Sorted(maps.Keys(h.Resources(connection, k.url))) {
				got = append(got, k.short+" "+name)
			}
		}
	}
	if want := strings.TrimSpace(blocks["text resources"]); strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nthe README says\n%s", strings.Join(got, "\n"), want)
	}
}

// blocks are the fenced blocks of a page by what stands behind their fence.
func blocks(page string) map[string]string {
	out := map[string]string{}
	name := ""
	for line := range strings.Lines(page) {
		rest, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && name == "":
			name = rest
		case fence:
			name = ""
		case name != "":
			out[name] += line
		}
	}
	return out
}

func TestConfig(t *testing.T) {
	for _, c := range []struct{ config, field string }{
		{`{"domain": ""}`, "domain"},
		{`{"domain": ".local"}`, "domain"},
		{`{"dmain": "x"}`, "dmain"},
	} {
		field, reason := plugintest.Refusal(t, istio.Plugin(), c.config)
		if field != c.field || reason == "" {
			t.Errorf("%s: refused at %q: %s", c.config, field, reason)
		}
	}
}
