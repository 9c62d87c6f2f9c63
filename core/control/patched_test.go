package control

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
)

// newPatched is a world of virtual hosts whose proxies, but for the one named bare, have a patch
// that adds a host and spoils what is in domain x.
func newPatched(t *testing.T) *hostsWorld {
	t.Helper()
	var on atomic.Bool
	b := newBench(t, func(cfg *Config) {
		cfg.Patches = func(_ string, n *corev3.Node) []string {
			if on.Load() && n.GetId() != "bare" {
				return []string{"upper"}
			}
			return nil
		}
	}, memory, istio, state.Expected{Name: "upper", Kind: pb.KindPatch, Limits: state.Limits{Call: time.Second}})
	upper := b.join("upper", &pb.Ready{Plugin: "upper", PluginVersion: "1", Types: []*pb.Type{{Url: pieces.RouteConfiguration}}})
	c := &crowd{world: worldOf(b, readyHosts())}
	c.all = append(c.all, c.proxy)
	c.acks(c.proxy)
	w := hostsIn(c)
	w.upper, w.split = upper, true
	w.makes = func(hosts string) string { return strings.ReplaceAll(hosts, "=x", "=bad") + " more" }
	on.Store(true)
	w.edit("one two three", "one two three")
	w.settle("one two three more")
	w.blamed()
	return w
}

// refusals are what is refused, and which patches that comes from.
func (w *hostsWorld) refusals(want ...report.Refusal) {
	w.t.Helper()
	var got []report.Refusal
	for _, r := range operations.NewExplainer(w.Operator()).Refusals() {
		got = append(got, report.Refusal{Name: r.Name, Pieces: r.Pieces, Patches: r.Patches, Held: r.Held})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Error(diff)
	}
}

// TestPatchedPieces: what a patch made, and a proxy refuses, is taken apart as what a generator
// made. Of a piece that the patch left as it was the owners are told as without it; of one that it
// made otherwise those whose objects changed with it, and which patch it was.
func TestPatchedPieces(t *testing.T) {
	two := report.Refusal{Name: "a", Pieces: []string{"virtual host two"}, Patches: []string{"upper"}, Held: true}
	for name, tt := range map[string]func(w *hostsWorld){
		"a piece that the patch spoils": func(w *hostsWorld) {
			w.edit("one two", "one=y two=x three")
			w.settle("one=y two three more")
			w.refusals(two)
			w.blamed("two")
			w.edit("one", "one=z two=x three")
			w.settle("one=z two three more")
			w.edit("two", "one=z two=y three")
			w.settle("one=z two=y three more")
			w.listen()
			w.refusals()
			w.blamed("")
		},
		"nobody has edited its object": func(w *hostsWorld) {
			w.edit("one", "one=y two=x three")
			w.settle("one=y two three more")
			w.refusals(two)
			w.blamed()
		},
		"a piece that the patch leaves as it was": func(w *hostsWorld) {
			w.edit("one", "one=y two=bad three")
			w.settle("one=y two three more")
			w.refusals(two)
			w.blamed("two")
		},
		"a piece that the patch adds": func(w *hostsWorld) {
			w.makes = func(hosts string) string { return hosts + " more=bad" }
			w.edit("one", "one=y two three")
			w.settle("one=y two three more")
			w.refusals(report.Refusal{Name: "a", Pieces: []string{"virtual host more"}, Patches: []string{"upper"}, Held: true})
			w.blamed()
			if w.asked != 0 {
				w.t.Errorf("the generator was asked %d times about what it did not make", w.asked)
			}
		},
		"for others": func(w *hostsWorld) {
			bare, plain := w.joins("bare"), w.joinsAs("plain")
			w.edit("two", "one=y two=x three")
			w.settle("one=y two three more")
			if got := w.said(w.joins("new").Pull().Types[w.url].Get("a")); got != "one=y two three more" {
				w.t.Errorf("one that comes has %s", got)
			}
			if got := w.said(plain.Pull().Types[w.url].Get("a")); got != "one=y two=bad three more" {
				w.t.Errorf("one of nobody has %s", got)
			}
			if got := w.said(bare.Pull().Types[w.url].Get("a")); got != "one=y two=x three" {
				w.t.Errorf("one without the patch has %s", got)
			}
		},
		"a piece of which the core knows that it would be refused": func(w *hostsWorld) {
			w.makes = func(hosts string) string { return strings.ReplaceAll(hosts, "=x", "=!") + " more" }
			w.edit("one two", "one=y two=x three")
			w.settle("one=y two three more")
			w.edit("one", "one=z two=x three four=x")
			w.settle("one=z two three four=! more") // a closed host, in its domain
			var hosts routev3.RouteConfiguration
			if err := proto.Unmarshal(w.has.Get("a").Value(), &hosts); err != nil || len(hosts.VirtualHosts[3].Routes) > 0 {
				w.t.Errorf("%v: the host that was never good is %v", err, hosts.VirtualHosts)
			}
			w.refusals()
			var said []string
			for r := range w.mid.State.Roster.Patcher("upper").Failures() {
				said = append(said, r.Failed())
			}
			const spoilt = "virtual host two, virtual host four of its answer about a, which Envoy would refuse: "
			if slices.Sort(said); len(said) == 0 || !strings.HasPrefix(said[len(said)-1], spoilt) {
				w.t.Errorf("it is said: %q", said)
			}
			w.edit("two", "one=z two=y three")
			w.settle("one=z two=y three more")
		},
		"the proxy has the patch no more": func(w *hostsWorld) {
			w.edit("two", "one two=x three")
			w.settle("one two three more")
			w.refusals(two)
			w.mid.State.Roster.Rules.Patches = func(string, *corev3.Node) []string { return nil }
			w.edit("one", "one=y two=x three")
			w.settle("one=y two=x three")
			w.listen()
			w.refusals()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt(newPatched(t)) })
		})
	}
}
