package incr

import (
	"errors"
	"fmt"
	"testing"
)

// printed is a key that counts how often it becomes text.
type printed int

var prints int

func (p printed) String() string {
	prints++
	return fmt.Sprint(int(p))
}

// TestFirstFailures: of many functions that fail some are listed, the same as long as they fail,
// and the others cost no texts.
func TestFirstFailures(t *testing.T) {
	const all, limit = 2000, 10
	g := New(Workers(1))
	in := NewInput[int](g, "in", Same[int])
	f := NewFunc(g, "f", Same[int], func(c *Ctx, k printed) (int, error) {
		v, _ := in.Get(c, int(k))
		if v > 0 {
			return 0, errors.New("wrong")
		}
		return v, nil
	})
	for k := range all {
		Observe(f, printed(k))
	}
	fail := func(from, to, v int) {
		for k := from; k < to; k++ {
			in.Set(k, v)
		}
		g.Wave()
	}
	check := func(what string, first, more int) {
		t.Helper()
		prints = 0
		list, others := g.FirstFailures(limit)
		if len(list) != limit || list[0].Key != printed(first) || len(others) != more {
			t.Errorf("%s: %v and %d others, not from %d and %d others", what, list, len(others), first, more)
		}
		if prints > limit {
			t.Errorf("%s: %d keys became text", what, prints)
		}
		for _, err := range others {
			if err == nil || err.Error() != "wrong" {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	fail(100, 100+limit, 1)
	check("some", 100, 0)
	fail(0, all, 2)
	check("then all", 100, all-limit)
	fail(100, 101, 0)
	check("one not any more", 0, all-1-limit) // by key
	if list := g.Failures(); len(list) != all-1 {
		t.Errorf("%d failures", len(list))
	}
}
