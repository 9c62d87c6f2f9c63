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
		if l = l.Next(c.used, 100, false); l != c.want {
			t.Errorf("%d: at %d %% it is %v, not %v", i, c.used, l, c.want)
		}
	}
	if l.Next(1<<60, 0, false) != Calm {
		t.Error("without a limit")
	}
	for _, c := range []struct {
		from Level
		used uint64
		want Level
	}{
		{Shedding, 79, Calm}, {Shedding, 80, Shedding}, {Ending, 90, Ending}, {Ending, 89, Shedding}, {Ending, 79, Calm}, {Calm, 80, Shedding},
	} {
		if l := c.from.Next(c.used, 100, true); l != c.want {
			t.Errorf("after a while at %d %%, %v becomes %v, not %v", c.used, c.from, l, c.want)
		}
	}
}

// TestExcess: what is kept for later goes before anybody is refused, and as long as anybody is.
func TestExcess(t *testing.T) {
	for _, c := range []struct{ used, limit, want uint64 }{{699, 1000, 0}, {700, 1000, 1}, {750, 1000, 50}, {2000, 1000, 1300}, {5, 0, 0}} {
		if got := Excess(c.used, c.limit); got != c.want {
			t.Errorf("%d of %d: %d", c.used, c.limit, got)
		}
	}
}

// TestRoom: a limit that leaves clients less than the process needs by itself is worth a word.
func TestRoom(t *testing.T) {
	for _, c := range []struct {
		used, limit uint64
		short       bool
	}{{50, 100, false}, {51, 100, true}, {500, 100, true}, {50, 0, false}} {
		if enough, short := Room(c.used, c.limit); short != c.short || enough != 2*c.used {
			t.Errorf("%d of %d: %v, %d", c.used, c.limit, short, enough)
		}
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
