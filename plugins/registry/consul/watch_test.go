package consul

import (
	"errors"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	some := func(n int) []entry { return make([]entry, n) }
	stale, certain := question{index: 10}, question{consistent: true}
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		watch watch
		asked question
		answer
		want verdict
		err  error
	}{
		{"first", watch{}, certain, answer{index: 5, leader: true, listed: listed{entries: some(2)}}, counts, nil},
		{"first, nothing", watch{}, certain, answer{index: 5, leader: true}, counts, nil},
		{"more", watch{index: 10, had: 2}, stale, answer{index: 11, leader: true, listed: listed{entries: some(3)}}, counts, nil},
		{"less", watch{index: 10, had: 2}, stale, answer{index: 11, leader: true, listed: listed{entries: some(1)}}, doubtful, nil},
		{"less, certain", watch{index: 10, had: 2}, certain, answer{index: 11, leader: true, listed: listed{entries: some(1)}}, counts, nil},
		{"backwards", watch{index: 10, had: 2}, stale, answer{index: 9, leader: true, listed: listed{entries: some(2)}}, doubtful, nil},
		{"backwards, certain", watch{index: 10, had: 2}, certain, answer{index: 9, leader: true}, counts, nil},
		{"a view behind", watch{index: 10, had: 2}, stale, answer{index: 9, leader: true, streamed: true, listed: listed{entries: some(2)}}, doubtful, nil},
		{"index 0", watch{index: 10}, stale, answer{leader: true}, fails, errIndex},
		{"nothing new", watch{index: 10, had: 2}, stale, answer{index: 10, leader: true, same: true}, nothingNew, nil},
		{"no leader", watch{index: 10}, stale, answer{index: 11}, fails, errLeader},
		{"broken", watch{index: 10}, stale, answer{err: broken}, fails, broken},
		{
			"rights became less", watch{index: 10, had: 2}, certain,
			answer{index: 11, leader: true, filtered: true, listed: listed{entries: some(1)}}, hides, nil,
		},
		{
			"rights were less before", watch{index: 10, had: 2, filtered: true}, certain,
			answer{index: 11, leader: true, filtered: true, listed: listed{entries: some(1)}}, counts, nil,
		},
		{"nothing without a token", watch{index: 10, had: 2}, certain, answer{index: 11, leader: true, anonymous: true}, hides, nil},
		{
			"less without a token", watch{index: 10, had: 2}, certain,
			answer{index: 11, leader: true, anonymous: true, listed: listed{entries: some(1)}}, counts, nil,
		},
		{"gone without a token", watch{index: 10, had: 2, unlisted: true}, certain, answer{index: 11, leader: true, anonymous: true}, gone, nil},
		{"unlisted, hidden", watch{index: 10, had: 2, filtered: true, unlisted: true}, certain, answer{index: 11, leader: true, filtered: true}, hides, nil},
		{"unlisted, gone", watch{index: 10, had: 2, unlisted: true}, certain, answer{index: 11, leader: true}, gone, nil},
		{"unlisted, there", watch{index: 10, had: 2, unlisted: true}, certain, answer{index: 11, leader: true, listed: listed{entries: some(1)}}, counts, nil},
		{"unlisted before it was known", watch{unlisted: true}, certain, answer{index: 11, leader: true, filtered: true}, gone, nil},
	} {
		c.watch.name = "web"
		got, err := c.watch.judge(c.asked, c.answer)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, got, err, c.want, c.err)
		}
		if q := c.watch.question(time.Minute); (got == doubtful) && !q.consistent {
			t.Errorf("%s: it is asked again as %+v", c.name, q)
		}
	}
	for _, a := range []answer{{index: 5, leader: true, filtered: true}, {index: 5, leader: true, anonymous: true}} {
		if got, err := new(watch).judge(certain, a); got != fails || !errors.Is(err, errBlind) {
			t.Errorf("a list of nothing, %+v: %d, %v", a, got, err)
		}
	}
}

// TestSettles: when a view is compared with the servers' state, for the first time and again.
func TestSettles(t *testing.T) {
	const while = 15 * time.Second
	began := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	for _, c := range []struct {
		name        string
		moved, sure int
		is          watch
		now         int
		want        time.Duration
	}{
		{"a view that has just moved", 10, 0, watch{streams: true}, 10, while},
		{"that has moved again", 20, 0, watch{streams: true}, 24, 11 * time.Second},
		{"that has not moved for a while", 10, 0, watch{streams: true}, 25, 0},
		{"nearly", 10, 0, watch{streams: true}, 24, time.Second},
		{"compared since", 10, 25, watch{streams: true}, 26, surely - time.Second},
		{"compared long ago", 10, 25, watch{streams: true}, 700, 0},
		{"one that moves all the time, too", 690, 25, watch{streams: true}, 690, 0},
		{"no view", 10, 0, watch{}, 100, surely},
		{"a view that is asked no more", 10, 0, watch{streams: true, direct: true}, 100, surely},
	} {
		c.is.moved, c.is.sure = at(c.moved), at(c.sure)
		if got := c.is.settles(at(c.now), while); got != c.want {
			t.Errorf("%s: %v; want %v", c.name, got, c.want)
		}
	}
}

func TestRetry(t *testing.T) {
	var w watch
	for i, want := range []time.Duration{250, 500, 1000, 2000, 2000, 2000} {
		if got := w.retry(2 * time.Second); got > want*time.Millisecond || got < want*time.Millisecond/2 {
			t.Errorf("%d: %v, not %v or up to a half less", i, got, want*time.Millisecond)
		}
	}
	for range 100 {
		if got := w.retry(time.Hour); got <= 0 || got > time.Hour {
			t.Error(got)
		}
	}
}
