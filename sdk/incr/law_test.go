package incr

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"
)

// world is a random program: tables, functions that read what the values they see tell them to,
// collections of all kinds. Two worlds of one seed are the same program in two graphs.
type world struct {
	g       *Graph
	tables  []*Input[int, int]
	faults  *Input[[2]int, int]
	sources []Source[int, int]
	sets    []Collection[int, int]
	indexes []*Index[int, int, int]
	joined  []Collection[Pair[int, int], int]
	keys    int
	ran     ran
	// cycles says that functions may need each other, at times.
	cycles bool
}

// few makes equal results likely.
const few = 7

func newWorld(seed uint64, keys, functions int, options ...Option) *world {
	w := &world{g: New(options...), keys: keys, cycles: seed%4 == 3}
	w.g.enough = 3
	w.ran.times = map[[2]int]int{}
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 3 {
		in := NewInput[int](w.g, fmt.Sprintf("table%d", i), Same[int])
		w.tables = append(w.tables, in)
		w.addSet(in)
	}
	w.faults = NewInput[[2]int](w.g, "faults", Same[int])
	w.addTangle(r, 1+r.IntN(6))
	for i := range functions {
		w.grow(r, i)
	}
	return w
}

func (w *world) addSet(c Collection[int, int]) {
	w.sets = append(w.sets, c)
	w.sources = append(w.sources, c)
}

// addTangle adds functions that read each other at any smaller key, and those before them at any
// key: their nodes' heights change all the time, and an edit may turn round who reads whom.
func (w *world) addTangle(r *rand.Rand, n int) {
	tangle := make([]*Func[int, int], n)
	for i := range tangle {
		salt, steps := r.IntN(1000), 1+r.IntN(3)
		tangle[i] = NewFunc(w.g, fmt.Sprintf("tangle%d", i), Same[int], func(c *Ctx, k int) (int, error) {
			w.ran.note(1000+i, k)
			acc := salt + k
			for range steps {
				v, _ := w.tables[acc%3].Get(c, (k+acc)%w.keys)
				acc += v
				switch {
				case acc%3 == 0 && w.cycles:
					acc += tangle[acc%n].Of(c, acc%w.keys)
				case acc%2 == 0 && k > 0:
					acc += 5 * tangle[acc%n].Of(c, acc%k)
				case i > 0:
					acc += 3 * tangle[acc%i].Of(c, acc%(k+1))
				}
			}
			return acc % few, w.fault(c, 1000+i, k, acc)
		})
		w.sources = append(w.sources, tangle[i])
		w.addSet(Each(w.tables[i%3], tangle[i]))
	}
}

// fault fails where the table of faults says so.
func (w *world) fault(c *Ctx, i, k, acc int) error {
	switch f, ok := w.faults.Get(c, [2]int{i, k % few}); {
	case ok && f == 0 && acc%2 == 0:
		panic("told to")
	case ok && acc%2 == 0:
		return fmt.Errorf("told to fail")
	}
	return nil
}

// grow adds a random thing that stands on those before it.
func (w *world) grow(r *rand.Rand, i int) {
	name := fmt.Sprintf("n%d", i)
	from := w.sets[r.IntN(len(w.sets))]
	body := w.body(r, i)
	switch r.IntN(10) {
	case 0, 1, 2:
		w.sources = append(w.sources, NewFunc(w.g, name, Same[int], body))
	case 3:
		w.addSet(Map(from, name, Same[int], func(c *Ctx, k, v int) (int, error) {
			x, err := body(c, k)
			return (x + v) % few, err
		}))
	case 4:
		w.addSet(Filter(from, name, func(c *Ctx, k, v int) bool {
			x, _ := body(c, k)
			return (x+v)%3 != 0
		}))
	case 5:
		f := NewFunc(w.g, name, Same[int], body)
		w.sources = append(w.sources, f)
		w.addSet(Each(from, f))
	case 6:
		w.addSet(FlatMap(from, name, Same[int], func(c *Ctx, k, v int) ([]Item[int, int], error) {
			var items []Item[int, int]
			for n := range v % 4 {
				items = append(items, Item[int, int]{(k + n*v) % w.keys, k % few})
			}
			return items, nil
		}))
	case 7, 8:
		x := NewIndex(from, name, func(k, v int) []int { return []int{v % few, k % few, few + v%2}[v%3:] })
		w.indexes = append(w.indexes, x)
		if r.IntN(2) == 0 {
			w.addSet(Group(x, name+"/group", Same[int], func(c *Ctx, i int, members []Item[int, int]) (int, error) {
				return digest(members) % few, nil
			}))
		}
	case 9:
		other := w.sets[r.IntN(len(w.sets))]
		by := func(k, v int) []int { return []int{k % (w.keys/4 + 1), v % few * 100}[:1+v%2] }
		j := Join(from, other, name, by, by, Same[int], func(c *Ctx, k Pair[int, int], a, b int) (int, error) {
			return (a + b + k.Left) % few, nil
		})
		w.joined = append(w.joined, j)
		w.addSet(FlatMap(j, name+"/flat", Same[int], func(c *Ctx, k Pair[int, int], v int) ([]Item[int, int], error) {
			return []Item[int, int]{{(k.Left + v) % w.keys, v}}, nil
		}))
	}
}

// body is a function that reads a few of the things before it, which and where depending on what it
// saw.
func (w *world) body(r *rand.Rand, i int) func(c *Ctx, k int) (int, error) {
	sources, indexes, sets, joined := len(w.sources), len(w.indexes), len(w.sets), len(w.joined)
	salt, steps, whole := r.IntN(1000), 1+r.IntN(4), r.IntN(12) == 0
	return func(c *Ctx, k int) (int, error) {
		w.ran.note(i, k)
		acc := k + salt
		for range steps {
			v, ok := w.sources[(acc*31)%sources].Get(c, acc%w.keys)
			if !ok {
				acc += 3
			}
			acc += v
			if indexes > 0 && acc%3 == 0 {
				acc += digest(w.indexes[acc%indexes].Of(c, acc%(few+2)))
			}
			if joined > 0 && acc%11 == 0 {
				v, _ := w.joined[acc%joined].Get(c, Pair[int, int]{acc % w.keys, k})
				acc += v
			}
			acc %= 1 << 20
		}
		if whole && acc%5 == 0 {
			acc += digest(w.sets[acc%sets].All(c))
		}
		if err := w.fault(c, i, k, acc); err != nil {
			return 0, err
		}
		if acc%13 == 0 {
			return 0, Absent
		}
		return acc % few, nil
	}
}

// ran counts how often each function ran in a wave.
type ran struct {
	sync.Mutex
	times map[[2]int]int
}

func (r *ran) note(i, k int) {
	r.Lock()
	defer r.Unlock()
	r.times[[2]int{i, k}]++
}

// check finds functions that ran more than once for one key.
func (r *ran) check(t *testing.T) {
	for f, times := range r.times {
		if times > 1 {
			t.Errorf("function %d ran %d times for %d", f[0], times, f[1])
		}
	}
	clear(r.times)
}

func digest(items []Item[int, int]) int {
	sum := 0
	for i, item := range items {
		sum += (i + 1) * (item.Key*3 + item.Value)
	}
	return sum % (1 << 20)
}

// want is a root in both graphs' terms.
type want struct {
	kind, which, key int
}

type seen struct {
	value any
	ok    bool
}

// plant makes the root of a want and returns how to look at it, and the set root if it is one.
func (w *world) plant(x want) (look func() seen, set *SetRoot[int, int], close func(), node func() id) {
	switch x.kind {
	case 0, 1:
		r := Observe(w.sources[x.which%len(w.sources)], x.key)
		return func() seen { v, ok := r.Value(); return seen{v, ok} }, nil, r.Close, func() id { return r.op.node }
	case 2:
		r := ObserveAll(w.sets[x.which%len(w.sets)])
		return func() seen { return seen{r.Items(), true} }, r, r.Close, func() id { return r.op.node }
	default:
		if len(w.indexes) == 0 {
			return w.plant(want{0, x.which, x.key})
		}
		r := ObserveAll(w.indexes[x.which%len(w.indexes)].At(x.key % (few + 2)))
		return func() seen { return seen{r.Items(), true} }, r, r.Close, func() id { return r.op.node }
	}
}

// history drives a world and remembers what a fresh one must be told.
type history struct {
	r      *rand.Rand
	rows   []map[int]int
	faults map[[2]int]int
	wants  []*planted
}

type planted struct {
	want
	look  func() seen
	set   *SetRoot[int, int]
	close func()
	node  func() id
	copy  map[int]int
}

func (h *history) edit(w *world) {
	for range 1 + h.r.IntN(4) {
		t := h.r.IntN(len(w.tables))
		k, v := h.r.IntN(w.keys), h.r.IntN(20)
		switch h.r.IntN(10) {
		case 0, 1, 2:
			delete(h.rows[t], k)
			w.tables[t].Delete(k)
		case 3: // rename
			if old, ok := h.rows[t][k]; ok {
				to := h.r.IntN(w.keys)
				delete(h.rows[t], k)
				w.tables[t].Delete(k)
				h.rows[t][to] = old
				w.tables[t].Set(to, old)
			}
		case 4: // there and back
			w.tables[t].Set(k, v+1)
			if old, ok := h.rows[t][k]; ok {
				w.tables[t].Set(k, old)
			} else {
				w.tables[t].Delete(k)
			}
		default:
			h.rows[t][k] = v
			w.tables[t].Set(k, v)
		}
	}
}

func (h *history) disturb(w *world, functions int) {
	switch h.r.IntN(9) {
	case 0:
		for range 3 {
			k := [2]int{h.r.IntN(2)*1000 + h.r.IntN(functions), h.r.IntN(few)}
			h.faults[k] = h.r.IntN(2)
			w.faults.Set(k, h.faults[k])
		}
	case 1, 2:
		for k := range h.faults {
			w.faults.Delete(k)
		}
		clear(h.faults)
	}
}

func (h *history) rewant(w *world) {
	if len(h.wants) > 0 && h.r.IntN(6) == 0 {
		i := h.r.IntN(len(h.wants))
		h.wants[i].close()
		h.wants = slices.Delete(h.wants, i, i+1)
	}
	if len(h.wants) < 3 || h.r.IntN(6) == 0 && len(h.wants) < 25 {
		p := &planted{want: want{h.r.IntN(4), h.r.IntN(1 << 20), h.r.IntN(w.keys)}, copy: map[int]int{}}
		p.look, p.set, p.close, p.node = w.plant(p.want)
		h.wants = append(h.wants, p)
	}
}

func TestLaw(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { lawHolds(t, uint64(seed), 60) })
	}
	t.Run("a cycle that moves up", func(t *testing.T) { lawHolds(t, 347, 60) })
}

func lawHolds(t *testing.T, seed uint64, waves int) {
	r := rand.New(rand.NewPCG(seed, 2))
	keys, functions, workers := 5+r.IntN(60), 5+r.IntN(40), 1+3*r.IntN(2)
	w := newWorld(seed, keys, functions, Workers(workers))
	h := &history{r: r, rows: []map[int]int{{}, {}, {}}, faults: map[[2]int]int{}}
	for wave := range waves {
		h.edit(w)
		h.disturb(w, functions)
		h.rewant(w)
		w.g.Wave()
		checkGraph(t, w.g)
		if !w.cycles {
			w.ran.check(t)
		}
		h.compare(t, w, seed, functions)
		if t.Failed() {
			t.Fatalf("seed %d, wave %d", seed, wave)
		}
	}
	h.end(t, w)
}

// compare looks at each root in the graph with a history and in one without.
func (h *history) compare(t *testing.T, w *world, seed uint64, functions int) {
	fresh := newWorld(seed, w.keys, functions, Workers(1))
	for i, rows := range h.rows {
		for k, v := range rows {
			fresh.tables[i].Set(k, v)
		}
	}
	for k, v := range h.faults {
		fresh.faults.Set(k, v)
	}
	looks := make([]func() seen, len(h.wants))
	nodes := make([]id, len(h.wants))
	for i, p := range h.wants {
		look, _, _, node := fresh.plant(p.want)
		looks[i], nodes[i] = look, node()
	}
	fresh.g.Wave()
	for i, p := range h.wants {
		p.apply()
		if fresh.g.taints(nodes[i]) {
			continue
		}
		if is, should := p.look(), looks[i](); !reflect.DeepEqual(is, should) {
			t.Errorf("root %d %v: %v, from scratch %v", i, p.want, is, should)
		}
		p.checkCopy(t)
	}
	if len(h.faults) == 0 && len(fresh.g.Failures()) == 0 && len(h.wants) > 0 {
		h.noFailures(t, w)
	}
}

// noFailures checks that no root needs a failed node.
func (h *history) noFailures(t *testing.T, w *world) {
	for i, p := range h.wants {
		if w.g.taints(p.node()) {
			t.Errorf("root %d %v still stands on a failure", i, p.want)
		}
	}
}

// apply keeps a copy of a collection up to date by what waves said.
func (p *planted) apply() {
	if p.set == nil {
		return
	}
	upserts, removes := p.set.Delta()
	for _, item := range upserts {
		p.copy[item.Key] = item.Value
	}
	for _, k := range removes {
		delete(p.copy, k)
	}
}

func (p *planted) checkCopy(t *testing.T) {
	if p.set == nil {
		return
	}
	is := map[int]int{}
	for _, item := range p.set.Items() {
		is[item.Key] = item.Value
	}
	if !reflect.DeepEqual(is, p.copy) {
		t.Errorf("%v: deltas add up to %v, elements are %v", p.want, p.copy, is)
	}
}

// end takes everything away and finds nothing left.
func (h *history) end(t *testing.T, w *world) {
	for _, p := range h.wants {
		p.close()
	}
	for i, rows := range h.rows {
		for k := range rows {
			w.tables[i].Delete(k)
		}
	}
	for k := range h.faults {
		w.faults.Delete(k)
	}
	for range 3 {
		w.g.Wave()
	}
	if n := w.g.Nodes(); n != 0 {
		t.Errorf("%d nodes are left: %v", n, w.g.liveNodes())
	}
	if f := w.g.Failures(); len(f) != 0 {
		t.Errorf("failures are left: %v", f)
	}
}
