package polling

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

type want struct {
	URI      string
	Discover bool
}

func TestSchedule(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewSchedule[want](Pace{Refresh: time.Hour, Retry: time.Second, MaxRetry: 3 * time.Second, Concurrent: 2})
	all := map[string]want{"a": {URI: "a"}, "b": {URI: "b"}, "c": {URI: "c"}}
	if gone := s.Adopt(all, now); len(gone) > 0 {
		t.Errorf("gone: %v", gone)
	}
	if got := s.Take(now); len(got) != 2 {
		t.Errorf("%d at once, want no more than 2", len(got))
	}
	if _, ok := s.Next(); ok {
		t.Error("nothing is due by time alone while all fetches are busy")
	}
	if !s.Fetched("a", all["a"], "keys", now) || s.Fetched("a", all["a"], "keys", now) {
		t.Error("the same keys are new once")
	}
	if got := s.Take(now); len(got) != 1 || got["c"].URI != "c" {
		t.Errorf("next %v, want c", got)
	}
	var waits []time.Duration
	for range 4 {
		waits = append(waits, s.Failed("b", all["b"], now))
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if at, ok := s.Next(); !ok || !at.Equal(now.Add(3*time.Second)) {
		t.Errorf("next at %v %v", at, ok)
	}
	// An item whose source changed is due at once; what an old fetch brings of it doesn't count.
	if gone := s.Adopt(map[string]want{"a": {URI: "a", Discover: true}, "c": all["c"]}, now); len(gone) > 0 {
		t.Errorf("gone: %v", gone)
	}
	if got := s.Take(now); !got["a"].Discover {
		t.Errorf("due: %v", got)
	}
	if s.Fetched("a", all["a"], "old", now) || s.Fetched("b", all["b"], "b", now) {
		t.Error("what nobody asks for any more counts")
	}
	if gone := s.Adopt(nil, now); !slices.Equal(gone, []string{"a"}) {
		t.Errorf("gone: %v", gone)
	}
}

// owned returns a schedule in which each owner wants so many, under keys OWNER/NUMBER, and its
// wants.
func owned(p Pace, now time.Time, counts map[string]int) (*Schedule[want], map[string]want) {
	all, owners := map[string]want{}, map[string][]string{}
	for owner, n := range counts {
		for i := range n {
			key := fmt.Sprintf("%s/%03d", owner, i)
			all[key], owners[key] = want{URI: key}, []string{owner}
		}
	}
	s := NewSchedule[want](p)
	s.Adopt(all, now)
	s.Own(owners)
	return s, all
}

func counts(taken map[string]want) map[string]int {
	out := map[string]int{}
	for key := range taken {
		owner, _, _ := strings.Cut(key, "/")
		out[owner]++
	}
	return out
}

// An owner has its share of the places, also while nobody else wants any; whoever has none gets
// one.
func TestOwnersHaveShares(t *testing.T) {
	now := time.Unix(1000, 0)
	s, all := owned(Pace{Concurrent: 8, PerOwner: 3}, now, map[string]int{"evil": 20})
	if got := counts(s.Take(now)); got["evil"] != 3 {
		t.Errorf("an owner alone has %v, want 3", got)
	}
	if at, ok := s.Next(); ok {
		t.Errorf("something is due at %v that there is no place for", at)
	}
	owners := map[string][]string{}
	for key := range all {
		owners[key] = []string{"evil"}
	}
	all["demo/0"], owners["demo/0"] = want{URI: "demo/0"}, []string{"demo"}
	// A set that both want is not held up by who has its share.
	all["both"], owners["both"] = want{URI: "both"}, []string{"evil", "other"}
	s.Adopt(all, now)
	s.Own(owners)
	if got := s.Take(now); len(got) != 2 || got["demo/0"].URI == "" || got["both"].URI == "" {
		t.Errorf("taken: %v", got)
	}
	// The last half of the places is for those who have none.
	many := map[string]int{}
	for i := range 3 {
		many[fmt.Sprint("evil", i)] = 20
	}
	s, all = owned(Pace{Concurrent: 8, PerOwner: 8}, now, many)
	if got := s.Take(now); len(got) != 4 {
		t.Errorf("%d taken by three, want half of 8", len(got))
	}
	all["z"] = want{URI: "z"}
	s.Adopt(all, now)
	if got := s.Take(now); len(got) != 1 || got["z"].URI != "z" {
		t.Errorf("taken: %v", got)
	}
}

// Owners take turns, however much some want: after each round all have had as many.
func TestOwnersTakeTurns(t *testing.T) {
	now := time.Unix(1000, 0)
	s, all := owned(Pace{Refresh: time.Hour, Concurrent: 1, PerOwner: 1}, now, map[string]int{"a": 50, "b": 50, "c": 2})
	got := map[string]int{}
	for range 6 {
		for key := range s.Take(now) {
			owner, _, _ := strings.Cut(key, "/")
			got[owner]++
			s.Fetched(key, all[key], "x", now)
		}
	}
	if got["a"] != 2 || got["b"] != 2 || got["c"] != 2 {
		t.Errorf("six turns went to %v, want two each", got)
	}
}

// What hangs until its time is over waits for as long as it hung, and goes behind what never
// failed.
func TestWhatHangsGoesBehind(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewSchedule[want](Pace{Refresh: time.Hour, Retry: time.Second, MaxRetry: time.Minute, Concurrent: 1})
	all := map[string]want{"slow": {URI: "slow"}}
	s.Adopt(all, now)
	s.Take(now)
	now = now.Add(10 * time.Second)
	if got := s.Failed("slow", all["slow"], now); got != 10*time.Second {
		t.Errorf("it waits %v, want as long as it hung", got)
	}
	now = now.Add(10 * time.Second)
	all["new"] = want{URI: "new"}
	s.Adopt(all, now.Add(time.Second))
	if got := s.Take(now.Add(time.Second)); got["new"].URI != "new" {
		t.Errorf("taken: %v", got)
	}
}
