package budget

import "testing"

// TestLevels: each is entered and left at shares of its own.
func TestLevels(t *testing.T) {
	l := Calm
	for i, c := range []struct {
		used uint64
		want Level
	}{
		{0, Calm}, {79, Calm}, {80, Shedding}, {75, Shedding}, {70, Shedding}, {69, Calm}, {79, Calm},
		{95, Ending}, {86, Ending}, {85, Ending}, {84, Shedding}, {89, Shedding}, {90, Ending}, {10, Calm}, {500, Ending},
	} {
		if l = l.Next(c.used, 100); l != c.want {
			t.Errorf("%d: at %d %% it is %v, not %v", i, c.used, l, c.want)
		}
	}
	if l.Next(1<<60, 0) != Calm {
		t.Error("without a limit")
	}
}

func TestHeaviest(t *testing.T) {
	many := make([]int64, 100)
	for i := range many {
		many[i] = int64(200 - i)
	}
	for _, c := range []struct {
		weights []int64
		many    int
	}{
		{nil, 0}, {[]int64{5}, 1}, {[]int64{0}, 0}, {[]int64{9, 8, 1}, 1}, {many, 5}, {append([]int64{900, 3}, make([]int64, 98)...), 2},
	} {
		if n := Heaviest(c.weights, 2000); n != c.many {
			t.Errorf("%v: %d", c.weights, n)
		}
	}
}
