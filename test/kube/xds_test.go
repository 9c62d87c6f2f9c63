package kube_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/line"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// TestFromAnIstiod: config/xds reads an istiod. What kubectl applies goes from the API server to
// the istiod, from there to the control plane, and to an Envoy: made, changed, mistaken, deleted;
// while the istiod is away, and when another one is at its place.
func TestFromAnIstiod(t *testing.T) {
	need.All(t)
	envoy.Binary(t) // or skip
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, documents(namespace, `{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}`, service))
	edge, _, _ := strings.Cut(gateway, "---")
	web := func(extra, answer string) { c.Apply(t, route("web", `"*"`, extra, answer)) }
	c.Apply(t, edge)
	web("", direct("one"))
	c.Apply(t, documents(route("a", "a.example", "", direct("a")), route("b", "b.example", "", direct("b"))))

	const open = "ENABLE_XDS_API_GENERATOR_AUTH=false" // who asks is not known in plain text
	istiod := kube.StartIstiod(t, c, open)
	l := line.New(t, istiod.XDS)
	w := newPlane(t, c, t.TempDir(),
		fmt.Sprintf("{name: istiod, kind: config, builtin: config/xds, config: {address: \"xds://%s\", maxRetry: 1s, revision: blue}} # of %%q", l.Address))
	w.answers(t, http.StatusOK, "one")
	w.says(t, "VirtualService", "shop/web", "ok", "xds://"+l.Address+"/networking.istio.io/VirtualService/shop/web")
	web("", direct("two"))
	w.answers(t, http.StatusOK, "two")

	// The API server takes what istiod's webhook would have refused, and the istiod serves it: the
	// last good version stays.
	web("", "match: [{uri: {regex: '('}}], "+direct("three"))
	w.says(t, "xds://"+l.Address+"/networking.istio.io/VirtualService/shop/web", "spec.http[0].match[0].uri")
	w.always(t, "two")
	web("", direct("four"))
	w.always(t, "four")
	web(", labels: {istio.io/rev: green}", direct("five"))
	w.answers(t, http.StatusNotFound, "")
	web("", direct("six"))
	w.answers(t, http.StatusOK, "six")

	istiod.Stop()
	w.says(t, "xds://"+l.Address, "the server does not answer", "what is known stays")
	web("", direct("seven"))
	w.always(t, "six")
	l.To(kube.StartIstiod(t, c, open).XDS)
	w.always(t, "seven")
	c.Kubectl(t, "delete", "virtualservice", "a", "-n", "shop")
	w.says(t, "VirtualService", "shop/b", "ok")
	w.always(t, "seven")
}
