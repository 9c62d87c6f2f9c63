package incr

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
)

// A wave gives the same with one worker and with many.
func TestParallelIsSequential(t *testing.T) {
	for seed := range uint64(12) {
		keys, functions := 200, 30
		worlds := []*world{newWorld(seed*4, keys, functions, Workers(1)), newWorld(seed*4, keys, functions, Workers(8))}
		var traces [2]string
		for i, w := range worlds {
			traces[i] = trace(w, seed, functions)
		}
		if traces[0] != traces[1] {
			t.Fatalf("seed %d: %s\n%s", seed, traces[0], traces[1])
		}
	}
}

// trace runs a history and writes down what can be seen of it.
func trace(w *world, seed uint64, functions int) string {
	h := &history{r: rand.New(rand.NewPCG(seed, 3)), rows: []map[int]int{{}, {}, {}}, faults: map[[2]int]int{}}
	out := ""
	for range 30 {
		h.edit(w)
		h.rewant(w)
		wave := w.g.Wave()
		out += fmt.Sprintln(wave.Number, wave.Runs, len(wave.Changed), w.g.Nodes())
		for _, p := range h.wants {
			out += fmt.Sprintln(p.look())
		}
	}
	return out
}

// Many rows that come and go leave neither nodes nor memory.
func TestNothingIsLeft(t *testing.T) {
	m := newMesh(500, 10, Workers(2))
	m.g.Wave()
	roots := m.g.roots
	for _, r := range roots {
		r.Close()
	}
	for i := range 500 {
		m.services.Delete(serviceName(i))
	}
	before := heap()
	most := m.g.Nodes()
	for range 3 {
		m.g.Wave()
	}
	if left := m.g.Nodes(); left != 10 { // the rows of scopes
		t.Errorf("%d of %d nodes are left: %v", left, most, m.g.liveNodes())
	}
	after := heap()
	if after > before {
		t.Errorf("memory grew from %d to %d", before, after)
	}
	if !m.g.Trim() || m.g.Trim() {
		t.Error("there is room to give back, and none after that")
	}
	if trimmed := heap(); trimmed > after-(before-after)/10 {
		t.Errorf("%d bytes before, %d without rows, %d trimmed", before, after, trimmed)
	}
	for i := range 500 {
		m.services.Set(serviceName(i), 80)
	}
	m.g.Wave()
	checkGraph(t, m.g)
	if got := m.g.Nodes(); got < 510 {
		t.Errorf("%d nodes for rows that are back", got)
	}
	runtime.KeepAlive(m)
}

// Ids, slots and places in tables are used again.
func TestTableForgets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	g := New()
	in := NewInput[int](g, "in", Same[int])
	have := map[int]int{}
	for range 300 {
		for range 50 {
			k := r.IntN(500)
			if _, ok := have[k]; ok && r.IntN(2) == 0 {
				delete(have, k)
				in.Delete(k)
			} else {
				have[k] = r.IntN(9)
				in.Set(k, have[k])
			}
		}
		g.Wave()
		is := map[int]int{}
		g.Read(func(c *Ctx) {
			for k := range 500 {
				if v, ok := in.Get(c, k); ok {
					is[k] = v
				}
			}
		})
		if !reflect.DeepEqual(is, have) {
			t.Fatalf("%v, not %v", is, have)
		}
	}
	if g.nodes.spaces.next > 510 {
		t.Errorf("%d ids for 500 keys", g.nodes.spaces.next)
	}
}

func TestOrderOfKeys(t *testing.T) {
	type key struct {
		name string
		rank int8
		on   bool
		at   [2]float64
	}
	g := New()
	in := NewInput[key](g, "in", Same[int])
	all := ObserveAll(in)
	sorted := []key{
		{"a", -1, false, [2]float64{}}, {"a", 0, false, [2]float64{1, 2}}, {"a", 0, false, [2]float64{2, 1}},
		{"a", 0, true, [2]float64{}}, {"b", -3, false, [2]float64{}},
	}
	for _, i := range []int{3, 1, 4, 0, 2} {
		in.Set(sorted[i], i)
	}
	g.Wave()
	for i, item := range all.Items() {
		if item.Value != i {
			t.Errorf("item %d is %v", i, item)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("pointers were taken for keys")
		}
	}()
	NewInput[*int](g, "pointers", Same[int])
}
