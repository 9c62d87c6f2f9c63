package istio

import (
	"fmt"
	"strings"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestLargeRegexesAreLogged: once there are both an expression that is too large for a stock
// bootstrap and an Envoy that may have one, the log says so, once for each object.
func TestLargeRegexesAreLogged(t *testing.T) {
	row := func(name, regex string) *pb.Row {
		return resource("shop/"+name, &networking.VirtualService{Hosts: []string{name}, Http: []*networking.HTTPRoute{{
			Match: []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Regex{Regex: regex}}}},
		}}})
	}
	const large = "[a-zA-Z0-9_-]{1,64}"
	stock, envoys := map[string]any{"COXSWAIN_NO_AGENT": "true"}, []string{"envoy.filters.http.router"}
	w := newWorld(t)
	says := func(what string, want string) {
		t.Helper()
		if got := strings.Join(w.out.logged, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q is logged, want %q", what, got, want)
		}
		w.out.logged = nil
	}
	commit := func(what string, want string, list ...*pb.Row) {
		t.Helper()
		w.commit(rows(config.VirtualServices, list...))
		says(what, want)
	}
	attach := func(what string, want string, connection uint64, p *sdk.Proxy) {
		t.Helper()
		w.attach(connection, p)
		says(what, want)
	}
	commit("nobody is connected", "", row("a", large), row("b", "a+"))
	attach("a proxy with an agent", "", 1, proxy(sidecarID, envoys, nil))
	attach("one that allows it", "", 2, proxy(sidecarID, envoys, map[string]any{"COXSWAIN_NO_AGENT": "true", "COXSWAIN_REGEX_PROGRAM": 32768}))
	attach("no Envoy", "", 3, proxy(sidecarID, nil, stock))
	attach("a stock Envoy", "VirtualService shop/a spec.http[0].match[0].uri.regex", 4, proxy(sidecarID, envoys, stock))
	attach("another one", "", 5, proxy("sidecar~10.9.9.7~b.default~default.svc.cluster.local", envoys, stock))
	commit("the same, and one without", "", row("a", large+"x"), row("b", "b+"))
	commit("another object", "VirtualService shop/b", row("b", large))
	commit("it is mended", "", row("b", "a+"))
	commit("it is back", "VirtualService shop/b", row("b", large))
	for _, c := range []uint64{4, 5} {
		w.e.Detach(c)
	}
	commit("the stock Envoys have gone", "", row("c", large))
	attach("one is back", "VirtualService shop/c", 6, proxy(sidecarID, envoys, stock))
	said := 0
	for i := range 300 {
		w.commit(rows(config.VirtualServices, row(fmt.Sprintf("n%d", i), large)))
		said += len(w.out.logged)
		w.out.logged = nil
	}
	if said > 101 || said < 50 {
		t.Errorf("%d lines of 300 objects", said)
	}
}
