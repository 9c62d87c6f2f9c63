package beside

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// agents makes pods on nodes and returns the rows about agents that ask in their place.
func (w *world) agents(t *testing.T) []row {
	c := w.cluster
	for _, account := range []string{"far", "ended", "failed", "waiting", "nowhere"} {
		c.Kubectl(t, "create", "serviceaccount", account, "-n", "shop")
	}
	c.Apply(t, pod("agent-1", trusted, "node-1", "Running")+pod("agent-2", trusted, "node-2", "Running")+pod("agent-3", trusted, "node-1", "Running")+
		pod("other-1", "istio-system/other", "node-1", "Running")+pod("near-1", "shop/web", "node-1", "Running")+pod("far-1", "shop/far", "node-2", "Running")+
		pod("ended-1", "shop/ended", "node-1", "Succeeded")+pod("failed-1", "shop/failed", "node-1", "Failed")+
		pod("waiting-1", "shop/waiting", "node-1", "Pending")+
		pod("nowhere-1", "shop/nowhere", "", "Pending"))
	token := func(account, pod string) caller {
		return bearer(c.Token(t, "istio-system", account, "istio-ca", pod), "clusterid", "Kubernetes")
	}
	first, gone := token("agent", "agent-1"), token("agent", "agent-3")
	c.Kubectl(t, "delete", "pod", "agent-3", "-n", "istio-system", "--force", "--grace-period=0")
	of := func(identity string) signing {
		return signing{metadata: map[string]any{"ImpersonatedIdentity": identity}}
	}
	shop := func(account string) signing { return of("spiffe://cluster.local/ns/shop/sa/" + account) }
	// What runs where comes to be known some time later.
	second := token("agent", "agent-2")
	for _, s := range []*server{w.istiod, w.coxswain} {
		for account, agent := range map[string]caller{"web": first, "far": second} {
			wait.For(t, s.name+" knows the pods", func() error {
				_, _, err := s.signs(t, agent, shop(account))
				return err
			})
		}
	}
	const may, foreignToo, over = "requests for somebody else's certificate",
		"the same, for an identity of a foreign trust domain",
		"the same, for an account whose pods on the node have ended"
	refused := func(what string, c caller, of signing) row {
		return certifies(what, c, of).but(may, "Unauthenticated", "PermissionDenied")
	}
	signed := func(name string) string { return "[" + name + "] [] for " + usually }
	return []row{
		certifies("its own", first, signing{}),
		certifies("an account of its node", first, shop("web")),
		certifies("for an hour", first, signing{seconds: 3600, metadata: of(web).metadata}),
		certifies("for 91 days", first, signing{seconds: 91 * 24 * 3600, metadata: of(web).metadata}),
		certifies("without clusterid", bearer(c.Token(t, "istio-system", "agent", "istio-ca", "agent-1")), shop("web")).
			but("the same, of an agent that names no cluster", "Unauthenticated", signed(web)),
		refused("an account of another node", first, shop("far")),
		certifies("the same, by the agent there", second, shop("far")),
		refused("an account without a pod", first, shop("cart")),
		refused("an account whose pod waits for a node", first, shop("nowhere")),
		refused("an account whose pod has failed", first, shop("failed")),
		certifies("an account whose pod has ended", first, shop("ended")).but(over, signed("spiffe://cluster.local/ns/shop/sa/ended"), "PermissionDenied"),
		certifies("an account whose pod has no address yet", first, shop("waiting")).but(over,
			signed("spiffe://cluster.local/ns/shop/sa/waiting"), "PermissionDenied"),
		refused("an account that isn't trusted asks", token("other", "other-1"), shop("web")),
		refused("a token that is bound to no pod", token("agent", ""), shop("web")),
		certifies("the token of a pod that is gone", gone, shop("web")),
		refused("by the agent's certificate", shows(w.authority.named(t, "spiffe://cluster.local/ns/istio-system/sa/agent")), shop("web")),
		refused("no identity", first, of("shop/web")),
		certifies("a foreign trust domain", first, of("spiffe://other.example/ns/shop/sa/web")).but(foreignToo,
			signed("spiffe://other.example/ns/shop/sa/web"), "PermissionDenied"),
		refused("another cluster's account of that name", bearer(w.east.Token(t, "istio-system", "agent", "istio-ca", ""), "clusterid", "east"), shop("web")),
	}
}
