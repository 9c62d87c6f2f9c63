package incr

import (
	"fmt"
	"slices"
	"testing"
)

func TestSmoke(t *testing.T) {
	g := New()
	in := NewInput[string](g, "in", func(a, b int) bool { return a == b })
	double := NewFunc(g, "double", func(a, b int) bool { return a == b }, func(c *Ctx, k string) (int, error) {
		v, ok := in.Get(c, k)
		if !ok {
			return 0, Absent
		}
		return 2 * v, nil
	})
	each := Each(in, double)
	idx := NewIndex(each, "mod", func(k string, v int) []int { return []int{v % 3} })
	sum := NewFunc(g, "sum", nil, func(c *Ctx, i int) (int, error) {
		s := 0
		for _, item := range idx.Of(c, i) {
			s += item.Value
		}
		return s, nil
	})
	for i := range 100 {
		in.Set(fmt.Sprint(i), i)
	}
	r := Observe(sum, 0)
	set := ObserveAll(idx.At(1))
	w := g.Wave()
	v, _ := r.Value()
	fmt.Println(w, v, len(set.Items()))
	in.Set("3", 103)
	w = g.Wave()
	v, _ = r.Value()
	up, rm := set.Delta()
	fmt.Println(w, v, up, rm)
	in.Delete("3")
	in.Delete("6")
	w = g.Wave()
	v, _ = r.Value()
	up, rm = set.Delta()
	fmt.Println(w, v, up, rm, g.Nodes())
	r.Close()
	set.Close()
	for i := range 100 {
		in.Delete(fmt.Sprint(i))
	}
	g.Wave()
	fmt.Println(g.Nodes())
	g.Wave()
	g.Wave()
	fmt.Println(g.Nodes(), slices.Sorted(slices.Values([]int{})))
}
