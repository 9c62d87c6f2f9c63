package view

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// TestEdits: bodies that are sent as edits of others, cut between fields or anywhere, right or
// wrong, are taken, refused and served as whole ones are. `make test-all` plays more histories.
func TestEdits(t *testing.T) {
	histories := 10
	if need.Long() {
		histories = 40
	}
	taken, refused := 0, 0
	for seed := range uint64(histories) {
		some, others, _ := edits(t, seed)
		taken, refused = taken+some, refused+others
	}
	if taken < 25*histories || refused < 5*histories {
		t.Errorf("%d were taken and %d refused: too few to tell", taken, refused)
	}
}

// TestEditsReproduce: a seed is a history. Otherwise none that fails could be looked at again.
func TestEditsReproduce(t *testing.T) {
	for seed := range uint64(2) {
		_, _, once := edits(t, seed)
		_, _, again := edits(t, seed)
		if diff := cmp.Diff(once, again); diff != "" {
			t.Fatalf("seed %d:\n%s", seed, diff)
		}
	}
}

// edits plays a random history of edits and returns how many were taken and how many refused, and
// what was served after each.
func edits(t *testing.T, seed uint64) (taken, refused int, trace []string) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	edited, whole := newViews(), newViews()
	for _, vs := range []*Views{edited, whole} {
		vs.Describe(&pb.View{View: 1, Type: routeType})
		if seed%2 == 0 {
			vs.bodies.types.Trusted[routeType] = true
		}
	}
	host := func() []byte {
		name := strings.Repeat("x", r.IntN(6000))
		return encode(t, &route.RouteConfiguration{
			Name:         strings.Repeat("r", r.IntN(3)),
			VirtualHosts: []*route.VirtualHost{{Name: name + "n", Domains: []string{"a.example"}}},
		})
	}
	// sent are the bodies that were not let go.
	sent := map[uint64][]byte{}
	send := func(vs *Views, b *pb.Body, pieces int) {
		all := b.Bytes
		for i := range pieces {
			size := len(all)
			if i < pieces-1 {
				size = r.IntN(len(all) + 1)
			}
			b.Bytes, b.More, all = bytes.Clone(all[:size]), i < pieces-1, all[size:]
			if err := vs.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{b}}); err != nil {
				t.Fatal(err)
			}
			b = &pb.Body{Id: b.Id}
		}
	}
	for id := uint64(1); id < 120; id++ {
		var base uint64
		if names := slices.Sorted(maps.Keys(sent)); len(names) > 0 {
			base = names[r.IntN(len(names))]
		}
		old := sent[base]
		head, tail := 0, 0
		if base != 0 {
			cuts := append(fieldStarts(old), len(old))
			if r.IntN(8) == 0 {
				cuts = []int{r.IntN(len(old) + 1), r.IntN(len(old) + 1)}
			}
			x, y := cuts[r.IntN(len(cuts))], cuts[r.IntN(len(cuts))]
			head, tail = min(x, y), len(old)-max(x, y)
		}
		var middle []byte
		for range r.IntN(4) {
			middle = append(middle, host()...)
		}
		if len(middle) > 0 && r.IntN(8) == 0 {
			middle[r.IntN(len(middle))] = byte(r.IntN(256))
		}
		value := bytes.Join([][]byte{old[:head], middle, old[len(old)-tail:]}, nil)
		send(edited, &pb.Body{Id: id, Bytes: middle, Base: base, Head: uint64(head), Tail: uint64(tail)}, 1+r.IntN(3))
		send(whole, &pb.Body{Id: id, Bytes: value}, 1)
		sent[id] = value
		name := nameOf(value)
		if r.IntN(8) == 0 {
			name = strings.Repeat("r", r.IntN(3))
		}
		entry := &pb.Change{View: 1, Type: routeType, Upserts: []*pb.Entry{{Name: name, Body: id}}}
		var got [2]string
		for i, vs := range []*Views{edited, whole} {
			if err := vs.Change(entry); err != nil {
				t.Fatal(err)
			}
			vs.Publish()
			for _, b := range vs.Get(routeType, 1).Snapshot().Bodies() {
				got[i] += fmt.Sprintf("%s %q ", b.Version(), encoded(b, true))
			}
			n := len(vs.refusals.Refused())
			got[i] += fmt.Sprint(n)
			if refused += n * i; n == 0 {
				taken += i
			}
		}
		trace = append(trace, got[0])
		if got[0] != got[1] {
			t.Fatalf("seed %d, body %d: edited %.300s\nwhole %.300s", seed, id, got[0], got[1])
		}
		gone := edited.bodies.Freed()
		edited.bodies.Collect(gone)
		whole.bodies.Collect(whole.bodies.Freed())
		audit(t, edited)
		audit(t, whole)
		for _, n := range gone {
			delete(sent, n)
		}
	}
	return taken, refused, trace
}

func nameOf(b []byte) string { return string(ownName(value{b})) }

// TestWrongEdits: an edit of what is not there, or of more than there is, ends the session.
func TestWrongEdits(t *testing.T) {
	for what, b := range map[string]*pb.Body{
		"no base":        {Id: 2, Base: 7},
		"a base to come": {Id: 2, Base: 3},
		"of itself":      {Id: 2, Base: 2},
		"too long":       {Id: 2, Base: 1, Head: 2, Tail: 2},
		"overflowing":    {Id: 2, Base: 1, Head: 2, Tail: ^uint64(0)},
	} {
		vs := newViews()
		if err := vs.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{{Id: 1, Bytes: []byte("abc")}, {Id: 3, More: true}}}); err != nil {
			t.Fatal(err)
		}
		if err := vs.bodies.Store(&pb.Bodies{Bodies: []*pb.Body{b}}); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}
