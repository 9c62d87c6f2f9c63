package nacos

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

// TestIstio: Nacos' own server for Istio (MCP over xDS) is one that config/xds can talk to, and has
// nothing that can be taken: the port of each of its ServiceEntries has the number 0, which Istio
// doesn't allow. That is shown, and what registry/nacos has of the same server is all right. When
// this fails, the number has come back, and config/xds's README is wrong.
func TestIstio(t *testing.T) {
	need.All(t)
	port := wait.Port(t)
	s := start(t, "nacos.extension.naming.istio.enabled=true", "nacos.istio.mcp.server.enabled=true",
		fmt.Sprintf("nacos.istio.mcp.server.port=%d", port), "nacos.istio.domain.suffix=.nacos")
	s.doors = append(s.doors, open(t, s.pod, port))
	s.Put(t, registries.Web(1), registries.Web(2))
	source := plugintest.StartTarget(t, plugintest.Process(process.Command{Path: registries.Program(), Args: []string{"plugin", "config/xds"}}), map[string]any{
		"address": fmt.Sprintf("127.0.0.1:%d", port), "types": []string{"networking.istio.io/v1alpha3/ServiceEntry"}, "maxRetry": "1s",
	})
	source.WaitSynced()
	source.WaitRows("faults", func(rows map[string]*sdk.Row) bool {
		for _, r := range rows {
			text := string(r.Payload)
			if strings.Contains(text, "ServiceEntry/public/web.DEFAULT-GROUP.public") && strings.Contains(text, `"field":"spec.ports[0].number"`) {
				return true
			}
		}
		return false
	})
	source.WaitRows("networking.istio.io/ServiceEntry", func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })

	h := begin(t, s, nil)
	h.WaitSynced()
	has(t, h, webHost, "10.0.0.1:80 1", "10.0.0.2:80 1")
}
