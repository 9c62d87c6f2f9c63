package xds

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/view"
)

func TestSubscriptionsAreOnePointer(t *testing.T) {
	s := newSubscriptions()
	a, b := s.get(false, []string{"x", "y"}), s.get(false, []string{"y", "x", "x"})
	if a != b || s.get(true, []string{"x", "y"}) == a || s.get(false, nil) != nil {
		t.Fatal("equal subscriptions differ, or different ones don't")
	}
	if !s.same(a, false, []string{"y", "x"}) || s.same(a, false, []string{"y", "z"}) || s.same(a, true, []string{"y", "x"}) {
		t.Fatal("same")
	}
	if got := s.and(s.get(true, []string{"a", "b"}), s.get(false, []string{"b", "c"})); got != s.get(false, []string{"b", "c"}) {
		t.Fatal(got)
	}
	if got := s.and(s.get(true, []string{"a"}), s.get(true, []string{"b"})); got != s.get(true, []string{"a", "b"}) {
		t.Fatal(got)
	}
	runtime.KeepAlive(a)
}

// TestDifferences: a subscription by a difference is that by the whole list, and the same for all
// who come to it.
func TestDifferences(t *testing.T) {
	s := newSubscriptions()
	from := s.get(false, []string{"a", "b", "c"})
	for _, test := range []struct{ add, drop, want []string }{
		{nil, nil, []string{"a", "b", "c"}},
		{[]string{"d", "b", "d"}, nil, []string{"a", "b", "c", "d"}},
		{[]string{"d", "e"}, []string{"e", "a", "x"}, []string{"b", "c", "d"}},
		{[]string{"ab"}, nil, []string{"ab", "a", "b", "c"}},
		{[]string{"a", "b"}, nil, []string{"a", "b", "c"}},
		{nil, []string{"a", "b"}, []string{"c"}},
		{nil, []string{"c", "b", "a"}, nil},
	} {
		want := s.get(false, test.want)
		for range 2 {
			if got := s.shift(from, test.add, test.drop); got != want {
				t.Errorf("+%v -%v: %v, want %v", test.add, test.drop, got, want)
			}
		}
		runtime.KeepAlive(want)
	}
	all := s.get(true, []string{"a"})
	if got := s.shift(all, nil, []string{"a"}); got == nil || got != s.get(true, nil) {
		t.Errorf("everything without names of its own: %v", got)
	}
	runtime.KeepAlive(all)
	runtime.KeepAlive(from)
}

// TestChangesAreSharedAndLetGo: streams in the same situation share one computation, which lasts as
// long as what it was made from.
func TestChangesAreSharedAndLetGo(t *testing.T) {
	m, subs := newMemo(), newSubscriptions()
	func() {
		from := situation{view.NewSnapshot(view.NewSet([]*view.Body{resource(cds, "a", "1")}), nil, true), subs.get(true, nil)}
		to := situation{view.NewSnapshot(view.NewSet([]*view.Body{resource(cds, "a", "2")}), nil, true), subs.get(true, nil)}
		c := m.change(from, to)
		if m.change(from, to) != c || len(c.upserts) != 1 {
			t.Fatal("not shared")
		}
		if contents, changes := m.size(); contents != 2 || changes != 1 {
			t.Fatal(contents, changes)
		}
		runtime.KeepAlive(from)
		runtime.KeepAlive(to)
	}()
	eventually(t, func() bool {
		runtime.GC()
		contents, changes := m.size()
		subs.mu.Lock()
		defer subs.mu.Unlock()
		return contents+changes+len(subs.live) == 0
	})
}

// TestManyWhoComeBackFindFragmentsJoined: as long as the snapshot is there; and few subscriptions
// are kept so.
func TestManyWhoComeBackFindFragmentsJoined(t *testing.T) {
	m, subs := newMemo(), newSubscriptions()
	snapshot := view.NewSnapshot(view.NewSet([]*view.Body{resource(cds, "a", "1")}), nil, true)
	visit := func(streams int, names ...string) *sharedContent {
		at := situation{snapshot, subs.get(false, names)}
		c := m.content(at)
		for range streams {
			c.sotw.of(c.bodies, false)
		}
		runtime.KeepAlive(at)
		return c
	}
	uses := func(c *sharedContent) int32 { return c.sotw.uses.Load() }
	visit(manyUses, "a")
	visit(manyUses-1, "a", "b")
	eventually(t, func() bool {
		runtime.GC()
		contents, _ := m.size()
		return contents == 1
	})
	if n := uses(visit(1, "a")); n != manyUses+1 {
		t.Errorf("many came back and found %d uses", n)
	}
	if n := uses(visit(1, "a", "b")); n != 1 {
		t.Errorf("few came back and found %d uses", n)
	}
	for i := range 3 * commonKept {
		visit(manyUses, fmt.Sprint(i))
	}
	eventually(t, func() bool {
		runtime.GC()
		contents, _ := m.size()
		return contents <= commonKept
	})
	runtime.KeepAlive(snapshot)
}

// BenchmarkPushToMany is what one changed endpoint costs with a thousand streams in the same
// situation: the diff once, a tail for each.
func BenchmarkPushToMany(b *testing.B) {
	const streams, resources = 1000, 1000
	var bodies []*view.Body
	var names []string
	for i := range resources {
		name := fmt.Sprintf("outbound|80||service-%d.default.svc.cluster.local", i)
		names, bodies = append(names, name), append(bodies, resource(eds, name, "1"))
	}
	m := newMemo()
	subs := newSubscriptions()
	from := situation{view.NewSnapshot(view.NewSet(bodies), nil, true), subs.get(false, names)}
	for b.Loop() {
		set := view.NewSet(append([]*view.Body(nil), bodies...)).With([]*view.Body{resource(eds, names[7], "2")}, nil)
		to := situation{view.NewSnapshot(set, nil, true), subs.get(false, names)}
		for range streams {
			c := m.change(from, to)
			r := response{typeURL: eds, version: m.content(to).version, nonce: "n", resources: c.upserts, fragments: c.sotw.of(c.upserts, false)}
			r.buffers()
		}
	}
}

// TestJoinedFragments: what few streams are sent is not copied, what many are sent goes out in few
// buffers, and is the same.
func TestJoinedFragments(t *testing.T) {
	var bodies []*view.Body
	for i := range 300 {
		value := bytes.Repeat([]byte{byte(i)}, 1000)
		if i%100 == 50 {
			value = bytes.Repeat(value, 100)
		}
		bodies = append(bodies, view.NewBody(cds, fmt.Sprint("c", i), value, 0))
	}
	var f sharedFragments
	plain := f.of(bodies, false)
	for range manyUses - 2 {
		if got := f.of(bodies, false); len(got) != len(plain) || len(f.joined) > 0 {
			t.Fatal("joined for few")
		}
	}
	joined := f.of(bodies, false)
	if len(joined) > 3*2+300*1100/block+4 || !bytes.Equal(joined.Materialize(), plain.Materialize()) {
		t.Fatalf("%d buffers in place of %d", len(joined), len(plain))
	}
}
