package incr

import (
	"fmt"
	"reflect"
	"testing"
)

func TestFlatMapTakesTheFirst(t *testing.T) {
	g := New()
	in := NewInput[int](g, "in", Same[string])
	letters := FlatMap(in, "letters", Same[int], func(c *Ctx, k int, text string) ([]Item[string, int], error) {
		var items []Item[string, int]
		for _, r := range text {
			items = append(items, Item[string, int]{string(r), k})
		}
		return items, nil
	})
	root := ObserveAll(letters)
	for _, step := range []struct {
		key  int
		text string
		want string
	}{
		{2, "ab", "[{a 2} {b 2}]"},
		{1, "bc", "[{a 2} {b 1} {c 1}]"},
		{1, "cc", "[{a 2} {b 2} {c 1}]"},
		{2, "", "[{c 1}]"},
	} {
		in.Set(step.key, step.text)
		g.Wave()
		if is := fmt.Sprint(root.Items()); is != step.want {
			t.Errorf("after %d=%s: %s, not %s", step.key, step.text, is, step.want)
		}
	}
}

func TestJoinMakesPairs(t *testing.T) {
	g := New()
	policies := NewInput[string](g, "policies", Same[string])
	workloads := NewInput[string](g, "workloads", Same[string])
	label := func(_, v string) []string { return []string{v} }
	joined := Join(policies, workloads, "selected", label, label, Same[string], func(c *Ctx, k Pair[string, string], _, _ string) (string, error) {
		return k.Left + "+" + k.Right, nil
	})
	root := ObserveAll(joined)
	policies.Set("p", "app=a")
	workloads.Set("w1", "app=a")
	workloads.Set("w2", "app=b")
	if w := g.Wave(); w.Runs != 1 {
		t.Errorf("%d runs", w.Runs)
	}
	workloads.Set("w2", "app=a")
	workloads.Delete("w1")
	g.Wave()
	upserts, removes := root.Delta()
	if fmt.Sprint(upserts, removes) != "[{{p w2} p+w2}] [{p w1}]" {
		t.Errorf("changed %v, removed %v", upserts, removes)
	}
}

func TestElementWithoutPlaceStaysWhereItWas(t *testing.T) {
	g := New()
	in := NewInput[string](g, "in", Same[int])
	x := NewIndex(in, "by sign", func(_ string, v int) []bool {
		if v == 0 {
			panic("zero has no sign")
		}
		return []bool{v > 0}
	})
	positive := ObserveAll(x.At(true))
	for _, step := range []struct {
		key      string
		value    int
		items    string
		failures int
	}{
		{"a", 1, "[{a 1}]", 0},
		{"a", 0, "[{a 0}]", 1},
		{"b", 2, "[{a 0} {b 2}]", 1},
		{"a", -1, "[{b 2}]", 0},
	} {
		in.Set(step.key, step.value)
		g.Wave()
		if is := fmt.Sprint(positive.Items()); is != step.items || len(g.Failures()) != step.failures {
			t.Errorf("after %s=%d: %s, failures %v", step.key, step.value, is, g.Failures())
		}
	}
}

func TestGroupAndConcat(t *testing.T) {
	g := New()
	in := NewInput[string](g, "in", func(a, b []byte) bool { return string(a) == string(b) })
	x := NewIndex(in, "by length", func(_ string, v []byte) []int { return []int{len(v)} })
	count := Group(x, "count", Same[int], func(_ *Ctx, _ int, members []Item[string, []byte]) (int, error) { return len(members), nil })
	text := Concat(x, "text")
	counts, two := ObserveAll(count), Observe(text, 2)
	in.Set("b", []byte("bb"))
	in.Set("a", []byte("aa"))
	in.Set("c", []byte("c"))
	g.Wave()
	if v, _ := two.Value(); string(v) != "aabb" {
		t.Errorf("joined: %s", v)
	}
	if is, want := counts.Items(), []Item[int, int]{{1, 1}, {2, 2}}; !reflect.DeepEqual(is, want) {
		t.Errorf("counted: %v", is)
	}
	in.Set("c", []byte("cc"))
	g.Wave()
	if v, _ := two.Value(); string(v) != "aabbcc" {
		t.Errorf("joined: %s", v)
	}
	if is, want := counts.Items(), []Item[int, int]{{2, 3}}; !reflect.DeepEqual(is, want) {
		t.Errorf("counted: %v", is)
	}
}

// The cost of an edit: functions run for what it concerns, not for what there is.
func TestOneEditAmongMany(t *testing.T) {
	const many = 100_000
	g := New()
	in := NewInput[int](g, "in", Same[int])
	parity := Map(in, "parity", Same[int], func(_ *Ctx, _ int, v int) (int, error) { return v % 2, nil })
	odd := Filter(parity, "odd", func(_ *Ctx, _, v int) bool { return v == 1 })
	copies := FlatMap(odd, "copies", Same[int], func(_ *Ctx, k, v int) ([]Item[int, int], error) {
		return []Item[int, int]{{2 * k, v}, {2*k + 1, v}}, nil
	})
	shards := NewIndex(copies, "shards", func(k, _ int) []int { return []int{k % 1000} })
	sizes := Group(shards, "sizes", Same[int], func(_ *Ctx, _ int, members []Item[int, int]) (int, error) { return len(members), nil })
	joined := Join(odd, parity, "joined", func(k, _ int) []int { return []int{k} }, func(k, _ int) []int { return []int{k} }, Same[int],
		func(_ *Ctx, k Pair[int, int], a, b int) (int, error) { return k.Left, nil })
	ObserveAll(sizes)
	ObserveAll(joined)
	for k := range many {
		in.Set(k, k)
	}
	g.Wave()
	for _, step := range []struct{ value, runs int }{{9, 1}, {10, 7}, {11, 7}, {13, 1}} {
		in.Set(7, step.value)
		if w := g.Wave(); w.Runs > step.runs {
			t.Errorf("set to %d: %d functions ran, not %d", step.value, w.Runs, step.runs)
		}
	}
	in.Delete(7)
	if w := g.Wave(); w.Runs > 7 {
		t.Errorf("deleted: %d functions ran", w.Runs)
	}
}

// What stands on an index sees items, though it keeps nodes.
func TestIndexIsACollection(t *testing.T) {
	g := New()
	in := NewInput[string](g, "in", Same[int])
	byValue := NewIndex(in, "by value", func(_ string, v int) []int { return []int{v} })
	bySize := NewIndex(byValue, "by size", func(_ int, members []Item[string, int]) []int { return []int{len(members)} })
	twice := Filter(byValue, "twice", func(_ *Ctx, _ int, members []Item[string, int]) bool { return len(members) == 2 })
	names := FlatMap(byValue, "names", Same[string], func(_ *Ctx, v int, members []Item[string, int]) ([]Item[string, string], error) {
		return []Item[string, string]{{members[0].Key, fmt.Sprint(v, len(members))}}, nil
	})
	wholes, pairs, same, first := ObserveAll(byValue), ObserveAll(bySize.At(2)), ObserveAll(twice), ObserveAll(names)
	member := Observe(bySize.At(2), 7)
	for _, step := range []struct {
		key                        string
		value                      int
		wholes, pairs, same, first string
		member                     bool
	}{
		{"a", 7, "[{7 [{a 7}]}]", "[]", "[]", "[{a 7 1}]", false},
		{"b", 7, "[{7 [{a 7} {b 7}]}]", "[{7 [{a 7} {b 7}]}]", "[{7 [{a 7} {b 7}]}]", "[{a 7 2}]", true},
		{"a", 8, "[{7 [{b 7}]} {8 [{a 8}]}]", "[]", "[]", "[{a 8 1} {b 7 1}]", false},
	} {
		in.Set(step.key, step.value)
		g.Wave()
		_, ok := member.Value()
		is := fmt.Sprintln(wholes.Items(), pairs.Items(), same.Items(), first.Items(), ok)
		if want := fmt.Sprintln(step.wholes, step.pairs, step.same, step.first, step.member); is != want {
			t.Errorf("after %s=%d: %s, not %s", step.key, step.value, is, want)
		}
	}
}

// backwards is a key with an order of its own.
type backwards struct{ n int }

func (b backwards) Compare(other backwards) int { return other.n - b.n }

func TestKeysOrderThemselves(t *testing.T) {
	g := New()
	in := NewInput[backwards](g, "in", Same[string])
	root := ObserveAll(in)
	for n, text := range []string{"x", "y", "z"} {
		in.Set(backwards{n}, text)
	}
	g.Wave()
	if is := fmt.Sprint(root.Items()); is != "[{{2} z} {{1} y} {{0} x}]" {
		t.Errorf("in the order %s", is)
	}
}
