package serviceentry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// shard keeps what a deriver published; it complains of rows that were published though they are as
// they were.
type shard struct {
	sdk.Publisher
	rows map[rowName]*sdk.Row
}

func (s *shard) Update(table string, upserts []*sdk.Row, deletes []string) error {
	for _, r := range upserts {
		n := rowName{Table: table, Key: r.Key}
		if same(s.rows[n], r) {
			return fmt.Errorf("%v was published again", n)
		}
		s.rows[n] = r
	}
	for _, k := range deletes {
		n := rowName{Table: table, Key: k}
		if s.rows[n] == nil {
			return fmt.Errorf("%v was deleted, but wasn't there", n)
		}
		delete(s.rows, n)
	}
	return nil
}

// derived takes a deriver through a change; faults are no failure.
func (s *shard) derived(d *deriver, change *state.Change) error {
	err := d.Derive(context.Background(), change, s)
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range list.Unwrap() {
			var f *sdk.Fault
			if !errors.As(e, &f) {
				return e
			}
		}
		return nil
	}
	return err
}

// history makes random changes of a few entries and workloads, which often concern each other.
type history struct {
	*rand.Rand
	builder state.Builder
	number  uint64
	// good are the last good rows of what is there, present what is there.
	good, present map[rowName]*sdk.Row
}

func (h *history) pick(list ...string) string { return list[h.IntN(len(list))] }

func (h *history) labels() map[string]string {
	return map[string]string{"app": h.pick("a", "b"), "version": h.pick("v1", "v2")}
}

// row returns a random row, and whether it is good.
func (h *history) row() (table string, row *sdk.Row, good bool) {
	namespace := h.pick("one", "two")
	row = &sdk.Row{Key: kinds.Key(namespace, h.pick("a", "b", "c", "d")), Created: int64(h.IntN(3)), Source: fmt.Sprint(h.IntN(100))}
	good = h.IntN(8) > 0
	if h.IntN(2) == 0 {
		w := h.workload(good)
		row.Payload, _ = kinds.Encode(w)
		return kinds.WorkloadEntry, row, good
	}
	row.Payload, _ = kinds.Encode(h.entry(good))
	return kinds.ServiceEntry, row, good
}

func (h *history) workload(good bool) *networking.WorkloadEntry {
	w := &networking.WorkloadEntry{Labels: h.labels(), Weight: uint32(h.IntN(2))}
	if good {
		w.Address = h.pick("10.0.0.1", "10.0.0.2", "10.0.0.3", "vm.example", "unix:///a")
	}
	return w
}

func (h *history) entry(good bool) *networking.ServiceEntry {
	e := &networking.ServiceEntry{
		Hosts:      []string{h.pick("a.x", "b.x", "c.x")},
		Ports:      []*networking.ServicePort{{Number: 80 + uint32(h.IntN(2)), Name: h.pick("http", "tcp"), Protocol: h.pick("http", "TCP")}},
		Resolution: networking.ServiceEntry_STATIC,
	}
	if !good {
		e.Addresses = []string{"bad"}
		return e
	}
	for range h.IntN(3) {
		e.Addresses = append(e.Addresses, h.pick("10.96.0.1", "10.96.0.2", "10.97.0.0/16"))
	}
	if h.IntN(3) == 0 {
		e.Hosts = append(e.Hosts, h.pick("a.x", "b.x"))
	}
	switch h.IntN(3) {
	case 0:
		e.WorkloadSelector = &networking.WorkloadSelector{Labels: map[string]string{"app": h.pick("a", "b")}}
	case 1:
		for range h.IntN(3) {
			e.Endpoints = append(e.Endpoints, &networking.WorkloadEntry{Address: h.pick("10.0.0.1", "10.0.0.2"), Labels: h.labels()})
		}
	default:
		e.Resolution = networking.ServiceEntry_DNS
	}
	return e
}

// step makes a few random changes and one revision of them.
func (h *history) step(t *testing.T) *state.Change {
	h.number++
	whole := h.number == 1 || h.IntN(20) == 0
	tables := map[string]*pb.TableRows{}
	of := func(name string) *pb.TableRows {
		if tables[name] == nil {
			tables[name] = &pb.TableRows{Table: name}
		}
		return tables[name]
	}
	changed := map[rowName]bool{}
	for range 1 + h.IntN(3) {
		table, row, good := h.row()
		n := rowName{Table: table, Key: row.Key}
		if changed[n] {
			continue
		}
		changed[n] = true
		if h.present[n] != nil && h.IntN(3) == 0 {
			delete(h.present, n)
			delete(h.good, n)
			of(table).Deletes = append(of(table).Deletes, row.Key)
			continue
		}
		h.present[n] = row
		if good {
			h.good[n] = row
		}
		of(table).Upserts = append(of(table).Upserts, row)
	}
	if whole {
		tables = tablesOf(h.present)
	}
	change, err := h.builder.Apply(&pb.State{
		Revision: &pb.Revision{Epoch: 1, Number: h.number}, Whole: whole, Tables: slices.Collect(maps.Values(tables)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return change
}

func tablesOf(rows map[rowName]*sdk.Row) map[string]*pb.TableRows {
	out := map[string]*pb.TableRows{}
	for n, r := range rows {
		if out[n.Table] == nil {
			out[n.Table] = &pb.TableRows{Table: n.Table}
		}
		out[n.Table].Upserts = append(out[n.Table].Upserts, r)
	}
	return out
}

// scratch derives rows from nothing.
func scratch(t *testing.T, rows map[rowName]*sdk.Row) map[rowName]*sdk.Row {
	t.Helper()
	var b state.Builder
	change, err := b.Apply(&pb.State{Whole: true, Tables: slices.Collect(maps.Values(tablesOf(rows)))})
	if err != nil {
		t.Fatal(err)
	}
	s := &shard{rows: map[rowName]*sdk.Row{}}
	if err := s.derived(newDeriver(Config{}), change); err != nil {
		t.Fatal(err)
	}
	return s.rows
}

func TestIncrementalEqualsFromScratch(t *testing.T) {
	histories := 100
	if testing.Short() {
		histories = 30
	}
	for seed := range uint64(histories) {
		h := &history{Rand: rand.New(rand.NewPCG(seed, 7)), good: map[rowName]*sdk.Row{}, present: map[rowName]*sdk.Row{}}
		d, got := newDeriver(Config{}), &shard{rows: map[rowName]*sdk.Row{}}
		for step := range 30 {
			if err := got.derived(d, h.step(t)); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
			want := scratch(t, h.good)
			if !maps.EqualFunc(got.rows, want, same) {
				t.Fatalf("seed %d, step %d: incremental %v, from scratch %v", seed, step, names(got.rows), names(want))
			}
		}
	}
}

func names(rows map[rowName]*sdk.Row) []rowName { return slices.SortedFunc(maps.Keys(rows), byName) }

// failing refuses rows until told otherwise.
type failing struct {
	*shard
	refuse bool
}

func (f *failing) Update(table string, upserts []*sdk.Row, deletes []string) error {
	if f.refuse {
		return errors.New("refused")
	}
	return f.shard.Update(table, upserts, deletes)
}

func TestWhatWasNotTakenIsPublishedAgain(t *testing.T) {
	h := &history{Rand: rand.New(rand.NewPCG(1, 1)), good: map[rowName]*sdk.Row{}, present: map[rowName]*sdk.Row{}}
	d, out := newDeriver(Config{}), &failing{shard: &shard{rows: map[rowName]*sdk.Row{}}}
	for range 200 {
		out.refuse = h.IntN(2) == 0
		_ = d.Derive(context.Background(), h.step(t), out)
		if want := scratch(t, h.good); !out.refuse && !maps.EqualFunc(out.rows, want, same) {
			t.Fatalf("incremental %v, from scratch %v", names(out.rows), names(want))
		}
	}
}
