package incr

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"
)

// mesh is a graph as a generator has it: services, and clusters of each for each scope, encoded,
// and the set of each scope.
type mesh struct {
	g        *Graph
	services *Input[string, int]
}

type piece struct{ body []byte }

func newMesh(services, scopes int, options ...Option) *mesh {
	m := &mesh{g: New(options...)}
	m.services = NewInput[string](m.g, "services", Same[int])
	scope := NewInput[int32](m.g, "scopes", Same[struct{}])
	ports := Map(m.services, "ports", Same[int], func(_ *Ctx, _ string, v int) (int, error) { return v / 2, nil })
	every := func() []int8 { return []int8{0} }
	clusters := Join(ports, scope, "clusters",
		func(string, int) []int8 { return every() }, func(int32, struct{}) []int8 { return every() },
		func(a, b *piece) bool { return string(a.body) == string(b.body) },
		func(_ *Ctx, k Pair[string, int32], port int, _ struct{}) (*piece, error) {
			return &piece{fmt.Appendf(nil, "%s:%d in %d", k.Left, port, k.Right)}, nil
		})
	byScope := NewIndex(clusters, "clusters by scope", func(k Pair[string, int32], _ *piece) []int32 { return []int32{k.Right} })
	for s := range int32(scopes) {
		scope.Set(s, struct{}{})
		ObserveAll(byScope.At(s))
	}
	for i := range services {
		m.services.Set(serviceName(i), 80)
	}
	return m
}

func serviceName(i int) string { return fmt.Sprintf("service-%d.shop.svc.cluster.local", i) }

func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// BenchmarkCold computes 1000 services in 10 scopes from nothing, and prints what a node costs.
func BenchmarkCold(b *testing.B) {
	for b.Loop() {
		before := heap()
		m := newMesh(1000, 10)
		m.g.Wave()
		b.ReportMetric(float64(heap()-before)/float64(m.g.Nodes()), "B/node")
		b.ReportMetric(float64(m.g.Nodes()), "nodes")
		runtime.KeepAlive(m)
	}
}

// BenchmarkEdit changes one service of 1000 in 10 scopes.
func BenchmarkEdit(b *testing.B) {
	m := newMesh(1000, 10)
	m.g.Wave()
	i := 0
	for b.Loop() {
		i++
		m.services.Set(serviceName(i%1000), 100+i)
		m.g.Wave()
	}
}

// BenchmarkCutOff changes a row in a way that nobody sees.
func BenchmarkCutOff(b *testing.B) {
	m := newMesh(1000, 10)
	m.g.Wave()
	i := 0
	for b.Loop() {
		i++
		m.services.Set(serviceName(7), 80+i%2)
		m.g.Wave()
	}
}

// BenchmarkFunctions has a million functions that read a row and a projection each, and prints what
// one costs besides its value.
func BenchmarkFunctions(b *testing.B) {
	for b.Loop() {
		before := heap()
		g := New()
		in := NewInput[int32](g, "in", Same[int32])
		f := NewFunc(g, "f", Same[int32], func(c *Ctx, k int32) (int32, error) {
			v, _ := in.Get(c, k/100)
			w, _ := in.Get(c, k%100)
			return v + w, nil
		})
		root := NewFunc(g, "root", Same[int], func(c *Ctx, _ int) (int, error) {
			for k := range int32(1_000_000) {
				f.Of(c, k)
			}
			return 0, nil
		})
		for k := range int32(10_000) {
			in.Set(k, k)
		}
		Observe(root, 0)
		g.Wave()
		b.ReportMetric(float64(heap()-before)/float64(g.Nodes()), "B/node")
		b.ReportMetric(float64(unsafe.Sizeof(node{})), "B/struct")
		runtime.KeepAlive(g)
	}
}
