package incr

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestEqualResultStopsTheSpread(t *testing.T) {
	g := New(Workers(1))
	in := NewInput[string](g, "in", Same[int])
	half := NewFunc(g, "half", Same[int], func(c *Ctx, k string) (int, error) {
		v, _ := in.Get(c, k)
		return v / 2, nil
	})
	twice := NewFunc(g, "twice", Same[int], func(c *Ctx, k string) (int, error) { return half.Of(c, k) * 2, nil })
	root := Observe(twice, "a")
	for _, step := range []struct{ value, runs, result int }{
		{4, 2, 4}, {5, 1, 4}, {5, 0, 4}, {6, 2, 6},
	} {
		in.Set("a", step.value)
		w := g.Wave()
		if v, ok := root.Value(); w.Runs != step.runs || v != step.result || !ok {
			t.Errorf("after %d: %d runs, result %d", step.value, w.Runs, v)
		}
	}
}

func TestVainReadIsWoken(t *testing.T) {
	g := New()
	in := NewInput[string](g, "in", Same[int])
	x := NewIndex(in, "by value", func(k string, v int) []int { return []int{v} })
	count := NewFunc(g, "count", Same[int], func(c *Ctx, v int) (int, error) { return len(x.Of(c, v)), nil })
	root := Observe(count, 7)
	g.Wave()
	why, _ := Explain(count, 7, 9)
	if len(why.Missing) != 1 || why.Missing[0] != (Row{"by value", 7}) {
		t.Errorf("explained by %v", why)
	}
	in.Set("other", 8)
	if w := g.Wave(); w.Runs != 0 {
		t.Errorf("another index key woke %d functions", w.Runs)
	}
	in.Set("this", 7)
	if w := g.Wave(); len(w.Changed) != 1 || w.Changed[0] != Observed(root) {
		t.Errorf("changed: %v", w.Changed)
	}
}

func TestFailureKeepsTheLastGoodValue(t *testing.T) {
	g := New()
	in := NewInput[string](g, "in", Same[string])
	f := NewFunc(g, "f", Same[string], func(c *Ctx, k string) (string, error) {
		switch v, _ := in.Get(c, k); v {
		case "panic":
			panic("at the disco")
		case "error":
			return "", errors.New("wrong")
		default:
			return v, nil
		}
	})
	exclaim := NewFunc(g, "exclaim", Same[string], func(c *Ctx, k string) (string, error) {
		v, ok := f.Get(c, k)
		return fmt.Sprint(v, ok), nil
	})
	root := Observe(exclaim, "a")
	for _, step := range []struct{ row, value, failure string }{
		{"error", "false", "wrong"},
		{"one", "onetrue", ""},
		{"panic", "onetrue", "at the disco"},
		{"error", "onetrue", "wrong"},
		{"two", "twotrue", ""},
	} {
		in.Set("a", step.row)
		g.Wave()
		if v, _ := root.Value(); v != step.value {
			t.Errorf("after %s: %s", step.row, v)
		}
		checkFailure(t, g.Failures(), step.failure)
	}
}

func checkFailure(t *testing.T, list []Failure, text string) {
	t.Helper()
	if text == "" {
		if len(list) != 0 {
			t.Errorf("failures: %v", list)
		}
		return
	}
	if len(list) != 1 || !strings.Contains(list[0].Err.Error(), text) || list[0].Function != "f" || list[0].Key != "a" {
		t.Fatalf("failures: %v, not %s", list, text)
	}
	if rows := list[0].Read; len(rows) != 1 || rows[0] != (Row{"in", "a"}) {
		t.Errorf("it read %v", rows)
	}
}

func TestCycleShowsItsPath(t *testing.T) {
	for _, workers := range []int{1, 4} {
		g := New(Workers(workers))
		next := NewInput[int](g, "next", Same[int])
		var f *Func[int, int]
		f = NewFunc(g, "f", Same[int], func(c *Ctx, k int) (int, error) {
			to, ok := next.Get(c, k)
			if !ok {
				return k, nil
			}
			return f.Of(c, to), nil
		})
		for k := range 5 {
			next.Set(k, k+1)
			Observe(f, k)
		}
		g.Wave()
		next.Set(4, 2)
		g.Wave()
		list := g.Failures()
		if len(list) != 3 {
			t.Fatalf("failures: %v", list)
		}
		for _, failure := range list {
			cycle, ok := errors.AsType[*CycleError](failure.Err)
			if !ok || len(cycle.Path) != 3 || !strings.Contains(cycle.Error(), "f(2) → f(3) → f(4)") && !strings.Contains(cycle.Error(), "f(4) → f(2)") {
				t.Errorf("failure: %v", failure.Err)
			}
		}
		next.Delete(3)
		g.Wave()
		if list := g.Failures(); len(list) != 0 {
			t.Errorf("failures: %v", list)
		}
		checkGraph(t, g)
	}
}

func TestReadBetweenWavesIsLetGo(t *testing.T) {
	g := New()
	in := NewInput[string](g, "in", Same[int])
	f := NewFunc(g, "f", Same[int], func(c *Ctx, k string) (int, error) {
		v, _ := in.Get(c, k)
		return v + 1, nil
	})
	in.Set("a", 1)
	g.Wave()
	g.Read(func(c *Ctx) {
		if v := f.Of(c, "a"); v != 2 {
			t.Errorf("read %d", v)
		}
	})
	for wave, want := range []int{2, 1, 1} {
		g.Wave()
		if n := g.Nodes(); n != want {
			t.Errorf("wave %d: %d nodes, not %d", wave, n, want)
		}
	}
}

// TestBelow: what of a function a value was made from, and nothing that others were.
func TestBelow(t *testing.T) {
	g := New(Workers(1))
	in := NewInput[string](g, "in", Same[int])
	half := NewFunc(g, "half", Same[int], func(c *Ctx, k string) (int, error) {
		v, ok := in.Get(c, k)
		if !ok {
			return 0, Absent
		}
		return v / 2, nil
	})
	sum := NewFunc(g, "sum", Same[int], func(c *Ctx, k string) (int, error) {
		out := 0
		for _, one := range strings.Split(k, "") {
			out += half.Of(c, one)
		}
		return out, nil
	})
	above := NewFunc(g, "above", Same[int], func(c *Ctx, k string) (int, error) { return sum.Of(c, k) + 1, nil })
	for i, k := range []string{"a", "b", "c"} {
		in.Set(k, 10*(i+1))
	}
	Observe(above, "abx")
	Observe(above, "c")
	g.Wave()
	if got := fmt.Sprint(Below(above, "abx", half)); got != "[{a 5} {b 10}]" {
		t.Errorf("made from %s", got)
	}
	if got := Below(above, "nobody", half); len(got) != 0 {
		t.Errorf("what nobody wants was made from %v", got)
	}
}
