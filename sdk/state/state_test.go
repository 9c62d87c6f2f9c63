package state_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func row(key, payload string) *pb.Row { return &pb.Row{Key: key, Payload: []byte(payload)} }

func message(number uint64, upserts []*pb.Row, deletes ...string) *pb.State {
	return &pb.State{
		Revision: &pb.Revision{Epoch: 1, Number: number},
		Tables:   []*pb.TableRows{{Table: "t", Upserts: upserts, Deletes: deletes}},
	}
}

// TestChanged: it yields what differs between two versions of a table, as a comparison of all rows
// does.
func TestChanged(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	b := &state.Builder{}
	var before *state.Table
	m := &pb.State{Whole: true, Revision: &pb.Revision{Epoch: 1, Number: 1}}
	for step := range uint64(60) {
		change, err := b.Apply(m)
		if err != nil {
			t.Fatal(err)
		}
		now, want, got := change.State.Table("a"), map[string]*pb.Row{}, map[string]*pb.Row{}
		for k, r := range now.All() {
			if before == nil || before.Get(k) != r {
				want[k] = r
			}
		}
		if before != nil {
			for k := range before.All() {
				if now.Get(k) == nil {
					want[k] = nil
				}
			}
		}
		for k, r := range now.Changed(before) {
			if _, twice := got[k]; twice {
				t.Errorf("%s comes twice", k)
			}
			got[k] = r
		}
		if !maps.Equal(got, want) {
			t.Fatalf("step %d: %v, want %v", step, got, want)
		}
		for range now.Changed(before) {
			break
		}
		before = now
		m = &pb.State{Revision: &pb.Revision{Epoch: 1, Number: step + 2}}
		rows := &pb.TableRows{Table: "a"}
		for range random.IntN(100) {
			key := fmt.Sprint(random.IntN(2000))
			if random.IntN(5) == 0 {
				rows.Deletes = append(rows.Deletes, key)
			} else if !slices.Contains(rows.Deletes, key) {
				rows.Upserts = append(rows.Upserts, &pb.Row{Key: key, Payload: []byte{byte(step)}})
			}
		}
		m.Tables = append(m.Tables, rows)
	}
	if before.Len() < 500 {
		t.Errorf("there are %d rows", before.Len())
	}
}

// A builder holds what a plain map would, through growth, splits and deletes; earlier states stay
// as they were; the index and a scan agree.
func TestRandomHistory(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var b state.Builder
	index := state.NewIndex("t", func(r *pb.Row) []string { return []string{string(r.Payload)} })
	model := map[string]string{}
	var states []*state.State
	var models []map[string]string
	for number := range uint64(200) {
		m := message(number+1, nil)
		m.Whole = number == 0 || number == 100
		if m.Whole {
			clear(model)
		}
		keys := map[string]bool{}
		for range random.IntN(60) {
			k, v := fmt.Sprint(random.IntN(2000)), fmt.Sprint(random.IntN(20))
			if keys[k] {
				continue
			}
			keys[k] = true
			if random.IntN(4) == 0 {
				m.Tables[0].Deletes = append(m.Tables[0].Deletes, k)
				delete(model, k)
				continue
			}
			m.Tables[0].Upserts = append(m.Tables[0].Upserts, row(k, v))
			model[k] = v
		}
		m.More = true
		if c, err := b.Apply(m); c != nil || err != nil {
			t.Fatalf("after half a state: %v %v", c, err)
		}
		change, err := b.Apply(&pb.State{Revision: m.Revision})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(change.Keys["t"], slices.Sorted(maps.Keys(keys))) {
			t.Fatalf("revision %d changed %v, want %v", number+1, change.Keys["t"], keys)
		}
		index.Apply(change)
		checkIndex(t, index, change.State)
		states, models = append(states, change.State), append(models, maps.Clone(model))
	}
	for i, s := range states {
		check(t, s, models[i])
	}
}

func check(t *testing.T, s *state.State, model map[string]string) {
	t.Helper()
	table := s.Table("t")
	if table.Len() != len(model) || !slices.Equal(table.Keys(), slices.Sorted(maps.Keys(model))) {
		t.Fatalf("revision %v has %d rows, want %d", s.Revision(), table.Len(), len(model))
	}
	for k, r := range table.All() {
		if string(r.Payload) != model[k] || table.Get(k) != r {
			t.Fatalf("row %s of %v is %s, want %s", k, s.Revision(), r.Payload, model[k])
		}
	}
}

func checkIndex(t *testing.T, x *state.Index, s *state.State) {
	t.Helper()
	scan := map[string][]string{}
	for _, k := range s.Table("t").Keys() {
		term := string(s.Row("t", k).Payload)
		scan[term] = append(scan[term], k)
	}
	for term := range 20 {
		if got, want := x.Keys(fmt.Sprint(term)), scan[fmt.Sprint(term)]; !slices.Equal(got, want) {
			t.Fatalf("term %d finds %v, want %v", term, got, want)
		}
	}
}

func TestIndexTouched(t *testing.T) {
	var b state.Builder
	x := state.NewIndex("t", func(r *pb.Row) []string { return []string{string(r.Payload), "all", "all"} })
	first := message(1, []*pb.Row{row("a", "1"), row("b", "2")})
	first.Whole = true
	for _, step := range []struct {
		m    *pb.State
		want string
	}{
		{first, "[1 2 all]"},
		{message(2, []*pb.Row{row("a", "3")}), "[1 3 all]"},
		{message(3, nil, "b", "c"), "[2 all]"},
	} {
		change, err := b.Apply(step.m)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(x.Apply(change)); got != step.want {
			t.Errorf("revision %d touched %s, want %s", step.m.Revision.Number, got, step.want)
		}
	}
}

func TestOrder(t *testing.T) {
	var b state.Builder
	if _, err := b.Apply(message(1, nil)); !errors.Is(err, state.ErrOrder) {
		t.Errorf("a difference first: %v", err)
	}
}

func TestWith(t *testing.T) {
	var b state.Builder
	first := message(1, []*pb.Row{row("a", "1"), row("b", "1")})
	first.Whole = true
	if _, err := b.Apply(first); err != nil {
		t.Fatal(err)
	}
	c := state.With(b.State(), state.Revision{Epoch: 1, Number: 2}, message(2, []*pb.Row{row("a", "2")}, "b").Tables)
	check(t, c.State, map[string]string{"a": "2"})
	check(t, b.State(), map[string]string{"a": "1", "b": "1"})
	if c.Before != b.State() || fmt.Sprint(c.Keys) != "map[t:[a b]]" {
		t.Errorf("change: %+v", c)
	}
}

func TestDecoder(t *testing.T) {
	n := 0
	d := state.NewDecoder(func(b []byte) (string, error) {
		n++
		if len(b) == 0 {
			return "", errors.New("empty")
		}
		return string(b) + "!", nil
	})
	r := row("a", "1")
	for range 3 {
		if v, err := d.Row(r); v != "1!" || err != nil {
			t.Errorf("%q %v", v, err)
		}
	}
	if v, _ := d.Row(row("a", "2")); v != "2!" || n != 2 {
		t.Errorf("%q after %d decodings", v, n)
	}
	if _, err := d.Row(row("b", "")); err == nil {
		t.Error("no error")
	}
	services := state.Of[pb.Service]()
	s := &pb.Service{Host: "a.b"}
	if got, err := services.Row(&pb.Row{Payload: s.AppendTo(nil)}); err != nil || got.Host != "a.b" {
		t.Errorf("%v %v", got, err)
	}
}

// BenchmarkOneRow is a change of one row of 100,000.
func BenchmarkOneRow(b *testing.B) {
	var builder state.Builder
	all := make([]*pb.Row, 100_000)
	for i := range all {
		all[i] = row(fmt.Sprintf("namespace/service-%d.example.com/http/10.0.0.1:%d", i, i), "x")
	}
	first := message(1, all)
	first.Whole = true
	if _, err := builder.Apply(first); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := builder.Apply(message(2, []*pb.Row{row(all[i%len(all)].Key, "y")})); err != nil {
			b.Fatal(err)
		}
	}
}
