package sds_test

import (
	"crypto/elliptic"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/generator/sds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// wants attaches a proxy of an account and asks for names.
func wants(t *testing.T, h *plugintest.Harness, namespace, account string, names ...string) (p *sdk.Proxy, view uint64) {
	t.Helper()
	p = proxy(t, namespace, account)
	h.Attach(p)
	view = h.Placement(p.Connection)[secretType]
	h.Want(secretType, view, names...)
	return p, view
}

// may says what an account may do.
func may(h *plugintest.Harness, namespace, account string, allowed bool) {
	r := secrets.Right{Allowed: allowed}
	if !allowed {
		r.Reason = "it may not list secrets"
	}
	h.Update(secrets.Rights, []*sdk.Row{{Key: namespace + "/" + account, Payload: r.Encode()}})
}

// waitRequested waits until sources are asked for so many objects, and so many rows in all.
func waitRequested(t *testing.T, h *plugintest.Harness, objects, rows int) {
	t.Helper()
	h.WaitRows(secrets.Requests, func(all map[string]*sdk.Row) bool {
		n := 0
		for _, row := range all {
			if q, err := secrets.DecodeRequest(row); err == nil {
				n += len(q.Objects)
			}
		}
		return n == objects && len(all) == rows
	})
}

func names(format string, from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

// What an account may not have is asked for by nobody, however many names it says and however long
// they are; a neighbour has its secret, a changed one too, and all is forgotten when its streams
// go.
func TestWithoutRights(t *testing.T) {
	h := plugintest.Start(t, sds.Plugin(), `{"kubernetes": true}`)
	h.WaitSynced()
	h.Update("clusters", []*sdk.Row{{Key: "far"}})
	chain, key := pair(t, ec(t, elliptic.P256()))
	next, nextKey := pair(t, ec(t, elliptic.P256()))
	_, gw := wants(t, h, "demo", "gw", "kubernetes://web")
	may(h, "demo", "gw", true)
	h.Update(secrets.SecretTable, []*sdk.Row{row("demo/web", map[string][]byte{"tls.crt": chain, "tls.key": key})})
	h.Settle()
	before := h.View(gw)["kubernetes://web"]
	if before == nil {
		t.Fatal("the neighbour isn't served")
	}
	waitRequested(t, h, 1, 2)

	bad := names("kubernetes://x%d", 0, 9900)
	p, evil := wants(t, h, "evil", "nobody", bad...)
	waitRequested(t, h, 1, 3)
	h.Settle()
	if n := len(h.View(evil)); n != 0 {
		t.Errorf("%d names are answered before rights are known", n)
	}
	may(h, "evil", "nobody", false)
	h.Settle()
	if n := len(h.View(evil)); n != len(bad) {
		t.Errorf("%d of %d names are said to be absent", n, len(bad))
	}
	waitRequested(t, h, 1, 3)
	long := make([]string, 800)
	for i := range long {
		long[i] = fmt.Sprintf("kubernetes://y%d%s", i, strings.Repeat("y", 3900))
	}
	for some := range slices.Chunk(long, 200) { // as the core cuts what a client says
		h.Want(secretType, evil, some...)
	}
	h.Settle()
	if body, said := h.View(evil)[long[799]]; !said || body != nil {
		t.Error("a name that can't be isn't said to be absent")
	}
	waitRequested(t, h, 1, 3)
	h.Update(secrets.SecretTable, []*sdk.Row{row("demo/web", map[string][]byte{"tls.crt": next, "tls.key": nextKey})})
	h.Settle()
	if after := h.View(gw)["kubernetes://web"]; after == nil || slices.Equal(before, after) {
		t.Error("the neighbour's new certificate is not served")
	}
	h.Detach(p.Connection)
	h.DropView(secretType, evil)
	waitRequested(t, h, 1, 2)
}

// Faults of one account hide nobody else's.
func TestManyFaults(t *testing.T) {
	h := plugintest.Start(t, sds.Plugin(), `{"kubernetes": true}`)
	h.WaitSynced()
	h.Update("clusters", []*sdk.Row{{Key: "far"}})
	wants(t, h, "a", "nobody", names("kubernetes://Bad%d", 0, 1000)...)
	seen := len(h.Faults())
	wants(t, h, "b", "gw", "kubernetes://Wrong")
	var other, own int
	for _, f := range h.Faults()[seen:] {
		switch {
		case strings.HasSuffix(f.What, "for proxies of b/gw"):
			other++
		case strings.HasSuffix(f.What, "for proxies of a/nobody"):
			own++
			if strings.HasPrefix(f.What, "further") && f.Reason != "512 or more can't be served either" {
				t.Errorf("the rest is told as %q", f.Reason)
			}
		}
	}
	if other != 1 || own != 33 {
		t.Errorf("%d faults of one, %d of the other", own, other)
	}
}

// An account may ask for so many objects: what it asked for first stays, the rest is refused with
// the setting's name, and follows once there is room.
func TestMaxObjects(t *testing.T) {
	if field, _ := plugintest.Refusal(t, sds.Plugin(), `{"maxObjects": 0}`); field != "maxObjects" {
		t.Errorf("refused for %q", field)
	}
	h := plugintest.Start(t, sds.Plugin(), `{"kubernetes": true, "maxObjects": 3}`)
	h.WaitSynced()
	h.Update("clusters", []*sdk.Row{{Key: "far"}})
	may(h, "edge", "gw", true)
	_, view := wants(t, h, "edge", "gw", names("kubernetes://n%d", 5, 8)...)
	waitRequested(t, h, 3, 4)
	// From a second proxy of the account, which says that it is of a cluster that nobody knows.
	second := proxy(t, "edge", "gw")
	second.Node = []byte(strings.ReplaceAll(string(second.Node), "east", "west"))
	h.Attach(second)
	other := h.Placement(second.Connection)[secretType]
	h.Want(secretType, other, "kubernetes://n5", "kubernetes://n0", "configmap://any/roots")
	waitRequested(t, h, 3, 4)
	h.Settle()
	for _, name := range []string{"kubernetes://n0", "configmap://any/roots"} {
		if body, said := h.View(other)[name]; !said || body != nil {
			t.Errorf("%s isn't refused", name)
		}
	}
	if _, said := h.View(other)["kubernetes://n5"]; said {
		t.Error("what the other proxy asked for is refused")
	}
	if !slices.ContainsFunc(h.Faults(), func(f *pb.Fault) bool {
		return strings.Contains(f.Reason, "proxies of edge/gw ask for more than 3 Secrets and ConfigMaps (maxObjects)")
	}) {
		t.Error("no fault names the setting")
	}
	// Another account has its own.
	may(h, "edge", "more", true)
	wants(t, h, "edge", "more", names("kubernetes://n%d", 0, 3)...)
	waitRequested(t, h, 6, 8)
	h.Drop(secretType, view, "kubernetes://n6", "kubernetes://n7")
	waitRequested(t, h, 4, 6)
	h.Want(secretType, view, "kubernetes://n6") // first, what waits
	waitRequested(t, h, 6, 8)
	if got := requested(h); !slices.Contains(got, "ConfigMap any/roots") {
		t.Errorf("%q are asked for: what waited comes before what came back", got)
	}
}

// A right that goes takes back what was asked for with it, and one that comes back asks for it
// again.
func TestRightComesAndGoes(t *testing.T) {
	h := plugintest.Start(t, sds.Plugin(), `{"kubernetes": true}`)
	h.WaitSynced()
	h.Update("clusters", []*sdk.Row{{Key: "far"}})
	chain, key := pair(t, ec(t, elliptic.P256()))
	_, view := wants(t, h, "edge", "gw", append(names("kubernetes://n%d", 0, 100), "kubernetes://web", "kubernetes://web-cacert")...)
	waitRequested(t, h, 2, 3)
	may(h, "edge", "gw", true)
	waitRequested(t, h, 102, 103)
	h.Update(secrets.SecretTable, []*sdk.Row{row("edge/web", map[string][]byte{"tls.crt": chain, "tls.key": key})})
	served := func(want bool) {
		t.Helper()
		h.Settle()
		if body := h.View(view)["kubernetes://web"]; (body != nil) != want {
			t.Errorf("served: %v", body != nil)
		}
	}
	served(true)
	may(h, "edge", "gw", false)
	waitRequested(t, h, 2, 3)
	served(false)
	may(h, "edge", "gw", true)
	waitRequested(t, h, 102, 103)
	served(true)
	// A source that starts again has not said yet what may be: all stays as it is.
	h.Update(secrets.Rights, nil, "edge/gw")
	h.Settle()
	waitRequested(t, h, 102, 103)
	served(true)
}
