package istio

import (
	"strconv"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestADelegateSpoilsItsOwnRoutes: of a virtual service that delegates to others, those of a
// delegate that Envoy would refuse are as they were, or answer 503 where they never were good. The
// root's own, and those of another delegate, have their next edit, and nobody else is told.
func TestADelegateSpoilsItsOwnRoutes(t *testing.T) {
	const bad = `headers: {response: {set: {x-evil: "%NOPE%"}}}`
	delegate := func(key, more string) *pb.TableRows {
		return rows(config.VirtualServices, spec(t, key, &networking.VirtualService{}, `
http: [{`+more+`, route: [{destination: {host: other.evil.svc.cluster.local}}]}]`))
	}
	root := func(value string) *pb.TableRows {
		return rows(config.VirtualServices, spec(t, "demo/v", &networking.VirtualService{}, `
hosts: [hello.example]
gateways: [mesh, default/gw]
http:
- {match: [{uri: {prefix: /evil}}], delegate: {name: d, namespace: evil}}
- {match: [{uri: {prefix: /good}}], delegate: {name: d, namespace: good}}
- {match: [{uri: {prefix: /evil2}}], delegate: {name: d, namespace: evil}}
- {headers: {response: {set: {x-demo: "`+value+`"}}}, route: [{destination: {host: hello.example}}]}`))
	}
	// said are what routes say, by their prefix: the value of a header, or the status of an answer.
	said := func(w *world, connection uint64, name string) map[string]string {
		out := map[string]string{}
		for _, h := range w.takenRoutes(connection, name).VirtualHosts {
			if !strings.HasPrefix(h.Name, "hello.example") {
				continue
			}
			for _, r := range h.Routes {
				out[r.Match.GetPrefix()+r.Match.GetPathSeparatedPrefix()] = spoken(r)
			}
		}
		return out
	}
	for name, before := range map[string]string{"it was good before": `headers: {response: {set: {x-evil: one}}}`, "it never was": ""} {
		t.Run(name, func(t *testing.T) {
			w := neighbours(t)
			w.commit(root("1"), delegate("good/d", `headers: {response: {set: {x-good: "1"}}}`))
			want := "503"
			if before != "" {
				want = "one"
				w.commit(delegate("evil/d", before))
			}
			w.ofDemo()
			w.commit(delegate("evil/d", bad))
			w.ofDemo()
			if told := w.out.since(); !strings.Contains(told, "NOPE") || !strings.Contains(told, "evil/d") ||
				strings.Contains(told, "demo/v}") || strings.Contains(told, "good/d}") {
				t.Errorf("told %q", told)
			}
			w.commit(root("2"), delegate("good/d", `headers: {response: {set: {x-good: "2"}}}`))
			for connection, name := range map[uint64]string{1: "80", 2: "http.80"} {
				got := said(w, connection, name)
				for prefix, want := range map[string]string{"/evil": want, "/evil2": want, "/good": "2", "/": "2"} {
					if got[prefix] != want {
						t.Errorf("%s of %s says %q, want %q", prefix, name, got[prefix], want)
					}
				}
			}
			w.out.since()
			w.commit(delegate("evil/d", `headers: {response: {set: {x-evil: mended}}}`))
			if got := said(w, 1, "80"); got["/evil"] != "mended" || got["/evil2"] != "mended" || w.out.since() != "" {
				t.Errorf("once it is mended: %v", got)
			}
		})
	}
}

// spoken is the value of the last header that a route adds, or the status of its answer.
func spoken(r *routev3.Route) string {
	if d := r.GetDirectResponse(); d != nil {
		return strconv.FormatUint(uint64(d.Status), 10)
	}
	for _, o := range r.ResponseHeadersToAdd {
		return o.Header.Value
	}
	return string(encode.Bytes(r))
}
