package environment

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

func row(key, payload string) *pb.Row { return &pb.Row{Key: key, Payload: []byte(payload)} }

// before returns the payloads that were served before, by key.
func before(changes map[string]Change) map[string]string {
	out := map[string]string{}
	for k, c := range changes {
		out[k] = string(payload(c.Before))
	}
	return out
}

func payload(r *pb.Row) []byte {
	if r == nil {
		return nil
	}
	return r.Payload
}

// keys returns the keys of all tables.
func keys(c Changes) []string {
	var out []string
	for _, t := range c {
		out = append(out, slices.Collect(maps.Keys(t))...)
	}
	slices.Sort(out)
	return out
}

func TestEqualRowsAreNoChange(t *testing.T) {
	e, s := New(), &Shard{Name: "files"}
	e.Pending.Update(s, "t", []*pb.Row{row("a", "1")}, nil)
	if got := e.Pending.Commit(false, nil); got["t"]["a"] != (Change{Source: true}) || e.Committed.Number() != 1 {
		t.Fatalf("changes %v at %d", got, e.Committed.Number())
	}
	again := row("a", "1")
	again.Source = "elsewhere.yaml:7"
	e.Pending.Update(s, "t", []*pb.Row{again}, []string{"never was"})
	if got := e.Pending.Commit(false, nil); len(got) != 0 || e.Committed.Number() != 1 {
		t.Errorf("equal rows made changes %v and number %d", got, e.Committed.Number())
	}
	if r := e.Committed.Row(Name{"t", "a"}, false); r.Source != "elsewhere.yaml:7" {
		t.Errorf("the place is %q", r.Source)
	}
}

func TestThereAndBackIsNoChange(t *testing.T) {
	e, s := New(), &Shard{Name: "files"}
	e.Pending.Update(s, "t", []*pb.Row{row("a", "1")}, nil)
	e.Pending.Commit(false, nil)
	e.Pending.Update(s, "t", []*pb.Row{row("a", "2")}, nil)
	e.Pending.Update(s, "t", []*pb.Row{row("a", "1")}, nil)
	if _, rest := e.Pending.Waits(); rest {
		t.Error("something waits to be committed")
	}
}

func TestFirstShardIsServed(t *testing.T) {
	e, one, two := New(), &Shard{Name: "one", Order: 1}, &Shard{Name: "two", Order: 2}
	e.Pending.Update(two, "t", []*pb.Row{row("a", "two")}, nil)
	e.Pending.Commit(false, nil)
	e.Pending.Update(one, "t", []*pb.Row{row("a", "one")}, nil)
	e.Pending.Commit(false, nil)
	if r := e.Committed.Row(Name{"t", "a"}, false); string(r.Payload) != "one" || e.Precedence.Hidden() != 1 {
		t.Errorf("served %s, hidden %d", r.Payload, e.Precedence.Hidden())
	}
	e.Pending.Update(two, "t", []*pb.Row{row("a", "zwei")}, nil)
	if got := e.Pending.Commit(false, nil); len(got) != 0 {
		t.Errorf("a hidden row's change is visible: %v", got)
	}
	e.Pending.Update(one, "t", nil, []string{"a"})
	e.Pending.Commit(false, nil)
	if r := e.Committed.Row(Name{"t", "a"}, false); string(r.Payload) != "zwei" || e.Precedence.Hidden() != 0 {
		t.Errorf("served %s, hidden %d", r.Payload, e.Precedence.Hidden())
	}
}

func TestReplaceDropsWhatDidNotComeAgain(t *testing.T) {
	e, s, other := New(), &Shard{Name: "s"}, &Shard{Name: "other", Order: 1}
	e.Pending.Update(s, "t", []*pb.Row{row("a", "1"), row("b", "1")}, nil)
	e.Pending.Update(other, "t", []*pb.Row{row("c", "1")}, nil)
	e.Pending.Commit(false, nil)
	e.Pending.Update(s, "t", []*pb.Row{row("uncommitted", "1")}, nil)
	e.Pending.Replace(s, map[string]map[string]*pb.Row{"t": {"b": row("b", "2"), "d": row("d", "1")}})
	got := e.Pending.Commit(false, nil)
	want := map[string]string{"a": "1", "b": "1", "d": ""}
	if diff := cmp.Diff(want, before(got["t"])); diff != "" {
		t.Error(diff)
	}
	if e.Committed.Row(Name{"t", "c"}, false) == nil {
		t.Error("another shard's row is gone")
	}
}

func TestEndpointsOfKnownServicesGoAhead(t *testing.T) {
	e, s := New(), &Shard{Name: "s"}
	e.Pending.Update(s, Services, []*pb.Row{row("ns/a.com", "1")}, nil)
	e.Pending.Commit(false, nil)
	e.Pending.Update(s, Services, []*pb.Row{row("ns/b.com", "1")}, nil)
	e.Pending.Update(s, Endpoints, []*pb.Row{row("ns/a.com/http/1.1.1.1:80", "1"), row("ns/b.com/http/1.1.1.1:80", "1")}, nil)
	if endpoints, rest := e.Pending.Waits(); !endpoints || !rest {
		t.Errorf("endpoints %v, rest %v", endpoints, rest)
	}
	if diff := cmp.Diff([]string{"ns/a.com/http/1.1.1.1:80"}, keys(e.Pending.Commit(false, e.Pending.Ahead))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ns/b.com", "ns/b.com/http/1.1.1.1:80"}, keys(e.Pending.Commit(false, nil))); diff != "" {
		t.Error(diff)
	}
}

// TestRandomHistories compares the environment with a plain model: rows by shard, the first shard
// wins, a commit names exactly the keys whose served row changed.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		e := New()
		shards := []*Shard{{Name: "a"}, {Name: "b", Order: 1}, {Name: "c", Order: 2}}
		now := make([]map[string]string, len(shards)) // newest rows by shard
		for i := range now {
			now[i] = map[string]string{}
		}
		old := map[string]string{}
		for step := range 100 {
			i, key := r.IntN(len(shards)), fmt.Sprint(r.IntN(8))
			switch r.IntN(4) {
			case 0:
				e.Pending.Update(shards[i], "t", nil, []string{key})
				delete(now[i], key)
			case 1:
				all := map[string]*pb.Row{}
				now[i] = map[string]string{}
				for range r.IntN(5) {
					k, v := fmt.Sprint(r.IntN(8)), fmt.Sprint(r.IntN(3))
					all[k], now[i][k] = row(k, v), v
				}
				e.Pending.Replace(shards[i], map[string]map[string]*pb.Row{"t": all})
			default:
				v := fmt.Sprint(r.IntN(3))
				e.Pending.Update(shards[i], "t", []*pb.Row{row(key, v)}, nil)
				now[i][key] = v
			}
			if r.IntN(3) > 0 {
				continue
			}
			want := map[string]string{}
			for i := len(now) - 1; i >= 0; i-- {
				for k, v := range now[i] {
					want[k] = v
				}
			}
			changed := map[string]string{}
			for k := range 8 {
				key := fmt.Sprint(k)
				if old[key] != want[key] {
					changed[key] = old[key]
				}
			}
			coming := map[string]string{}
			for k, row := range e.Pending.Coming("t") {
				coming[k] = string(row.Payload)
			}
			if diff := cmp.Diff(want, coming); diff != "" {
				t.Fatalf("seed %d step %d: rows to come: %s", seed, step, diff)
			}
			got := before(e.Pending.Commit(false, nil)["t"])
			if diff := cmp.Diff(changed, got); diff != "" {
				t.Fatalf("seed %d step %d: changed keys: %s", seed, step, diff)
			}
			served := map[string]string{}
			for k, row := range e.Committed.Rows("t", false) {
				served[k] = string(row.Payload)
			}
			if diff := cmp.Diff(want, served); diff != "" {
				t.Fatalf("seed %d step %d: served rows: %s", seed, step, diff)
			}
			old = want
		}
	}
}

func TestDebounce(t *testing.T) {
	start := time.Unix(1000, 0)
	ms := func(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }
	for name, tt := range map[string]struct {
		touches []int
		other   int // when another source changes something; 0: it doesn't
		want    int
	}{
		"quiet after one":                      {[]int{0}, 0, 100},
		"each change delays":                   {[]int{0, 50, 90}, 0, 190},
		"but not for ever":                     {[]int{0, 90, 180, 270, 360, 450, 480, 570, 660, 750}, 0, 800},
		"another's, too":                       {[]int{0, 50}, 90, 190},
		"a burst of one is waited for":         {[]int{0, 90, 180, 270, 360}, 10, 460},
		"but it delays another's not for ever": {[]int{0, 90, 180, 270, 360, 450, 540}, 10, 510},
		"nor one that comes late":              {[]int{0, 90, 180, 270, 360, 450, 540}, 200, 640},
	} {
		t.Run(name, func(t *testing.T) {
			d := Debounce{After: 100 * time.Millisecond, Max: 800 * time.Millisecond}
			if !d.Due().IsZero() {
				t.Error("due before anything happened")
			}
			for _, at := range tt.touches {
				d.Touch("a", ms(at))
			}
			if tt.other > 0 {
				d = Debounce{After: d.After, Max: d.Max}
				all := slices.Sorted(slices.Values(append(slices.Clone(tt.touches), tt.other)))
				for _, at := range all {
					d.Touch(map[bool]string{true: "b", false: "a"}[at == tt.other], ms(at))
				}
			}
			if got := d.Due(); !got.Equal(ms(tt.want)) {
				t.Errorf("due at %s, want %s", got.Sub(start), ms(tt.want).Sub(start))
			}
			d.Reset()
			if !d.Due().IsZero() {
				t.Error("due after a reset")
			}
		})
	}
}

// TestHad: a row was there before if any shard served it when proxies saw all, whatever has
// happened to it since.
func TestHad(t *testing.T) {
	e, s := New(), &Shard{Name: "s"}
	e.Pending.Update(s, "t", []*pb.Row{row("stays", "1"), row("goes", "1"), row("changes", "1")}, nil)
	e.Pending.Commit(false, nil)
	e.Unseen.Seen()
	e.Pending.Update(s, "t", []*pb.Row{row("changes", "2"), row("comes", "1")}, []string{"goes"})
	e.Pending.Commit(false, nil)
	for key, want := range map[string]bool{"stays": true, "goes": true, "changes": true, "comes": false, "never": false} {
		if got := e.Unseen.Had(Name{"t", key}); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
	if e.Unseen.Had(Name{"other", "stays"}) {
		t.Error("a table that nobody has fills")
	}
}
