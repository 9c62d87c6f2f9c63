package istio

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/internal/casetest"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// The law: whatever happened before, what an engine has reported is what a fresh one makes of the same rows.

// pool is what histories are made of: the rows and proxies of many cases. Rows of several cases that share a key take turns.
type pool struct {
	tables  []string
	rows    map[string]map[string][]*pb.Row
	proxies []*sdk.Proxy
	// names that some proxy of some case wants.
	clusters, routes []string
}

func newPool(t *testing.T) *pool {
	p := &pool{rows: map[string]map[string][]*pb.Row{}}
	paths, err := filepath.Glob(filepath.Join(casetest.Dir(t), "0*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		p.take(t, casetest.Load(t, path))
	}
	p.tables = slices.Sorted(maps.Keys(p.rows))
	slices.Sort(p.clusters)
	slices.Sort(p.routes)
	p.clusters, p.routes = slices.Compact(p.clusters), slices.Compact(p.routes)
	return p
}

func (p *pool) take(t *testing.T, c *casetest.Case) {
	for _, r := range c.Rows {
		if p.rows[r.Table] == nil {
			p.rows[r.Table] = map[string][]*pb.Row{}
		}
		for _, row := range r.Upserts {
			p.rows[r.Table][row.Key] = append(p.rows[r.Table][row.Key], row)
		}
	}
	for _, x := range c.Proxies {
		node, err := proto.Marshal(x.Node)
		if err != nil {
			t.Fatal(err)
		}
		p.proxies = append(p.proxies, &sdk.Proxy{Node: node})
		p.clusters = slices.AppendSeq(p.clusters, maps.Keys(x.Expected["eds"]))
		p.routes = slices.AppendSeq(p.routes, maps.Keys(x.Expected["rds"]))
	}
}

// history is one run of random events against an engine.
type history struct {
	*world
	pool *pool
	rand *rand.Rand
	// rows that there are, and proxies that are attached, by connection.
	rows     map[string]map[string]*pb.Row
	attached map[uint64]*sdk.Proxy
	wanted   map[uint64]map[string][]string
	asked    map[string]bool
	next     uint64
}

func TestIncrementalIsAsFromScratch(t *testing.T) {
	p := newPool(t)
	histories, steps := 6, 25
	if testing.Short() {
		histories = 2
	}
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &history{
				world: newWorld(t), pool: p, rand: rand.New(rand.NewPCG(seed, 7)),
				rows: map[string]map[string]*pb.Row{}, attached: map[uint64]*sdk.Proxy{}, wanted: map[uint64]map[string][]string{},
				asked: map[string]bool{},
			}
			h.commit()
			for step := range steps {
				for range 1 + h.rand.IntN(3) {
					h.event()
				}
				h.check(step)
			}
		})
	}
}

func (h *history) event() {
	switch h.rand.IntN(6) {
	case 0:
		h.connect()
	case 1:
		h.disconnect()
	case 2:
		h.edit(state.Endpoints)
	default:
		h.edit(h.pool.tables...)
	}
}

// edit commits some rows of the pool, and takes others away.
func (h *history) edit(tables ...string) {
	var changes []*pb.TableRows
	for range 1 + h.rand.IntN(8) {
		table := pick1(h.rand, tables)
		key := pick1(h.rand, sortedNames(h.pool.rows[table]))
		c := &pb.TableRows{Table: table}
		if h.rows[table] == nil {
			h.rows[table] = map[string]*pb.Row{}
		}
		if h.rows[table][key] != nil && h.rand.IntN(3) == 0 {
			c.Deletes = []string{key}
			delete(h.rows[table], key)
		} else {
			row := pick1(h.rand, h.pool.rows[table][key])
			c.Upserts = []*pb.Row{row}
			h.rows[table][key] = row
		}
		changes = append(changes, c)
	}
	h.commit(changes...)
}

func pick1[V any](r *rand.Rand, list []V) V { return list[r.IntN(len(list))] }

func (h *history) connect() {
	h.next++
	p := *pick1(h.rand, h.pool.proxies)
	h.attach(h.next, &p)
	h.attached[h.next] = &p
	h.wanted[h.next] = map[string][]string{}
	for range 4 {
		h.wanted[h.next][encode.EndpointType] = append(h.wanted[h.next][encode.EndpointType], pick1(h.rand, h.pool.clusters))
		h.wanted[h.next][encode.RouteType] = append(h.wanted[h.next][encode.RouteType], pick1(h.rand, h.pool.routes))
	}
}

func (h *history) disconnect() {
	if len(h.attached) < 2 {
		return
	}
	c := pick1(h.rand, slices.Sorted(maps.Keys(h.attached)))
	at := h.out.placed[c]
	h.e.Detach(c)
	delete(h.attached, c)
	delete(h.out.placed, c)
	for typeURL, view := range at {
		if !h.used(typeURL, view) {
			h.e.Drop(typeURL, view, nil, true)
		}
	}
}

func (h *history) used(typeURL string, view uint64) bool {
	for c := range h.attached {
		if h.out.placed[c][typeURL] == view {
			return true
		}
	}
	return false
}

// check compares everything that attached proxies have with what a fresh engine gives them.
func (h *history) check(step int) {
	h.t.Helper()
	fresh := newWorld(h.t)
	var all []*pb.TableRows
	for _, table := range sortedNames(h.rows) {
		all = append(all, &pb.TableRows{Table: table, Upserts: slices.Collect(maps.Values(h.rows[table]))})
	}
	fresh.commit(all...)
	for _, c := range slices.Sorted(maps.Keys(h.attached)) {
		p := *h.attached[c]
		fresh.attach(c, &p)
		for _, typeURL := range p.Types {
			names := h.wanted[c][typeURL]
			got, want := h.reported(c, typeURL, names), fresh.get(c, typeURL, names...)
			for _, name := range names {
				h.same(step, c, name, got[name], want[name])
			}
			if names != nil {
				continue
			}
			if g, w := keysOf(got), keysOf(want); !slices.Equal(g, w) {
				h.t.Fatalf("step %d: connection %d: %s: resources\n  %s, from scratch\n  %s", step, c, typeURL, strings.Join(g, "\n  "), strings.Join(w, "\n  "))
			}
			for name := range want {
				h.same(step, c, name, got[name], want[name])
			}
		}
	}
	if !slices.Equal(h.out.faults, fresh.out.faults) {
		h.t.Fatalf("step %d: faults %v, from scratch %v", step, h.out.faults, fresh.out.faults)
	}
}

// reported is what a connection has: asked for once in each view that it comes to, and from then on what the engine reports by itself.
func (h *history) reported(connection uint64, typeURL string, names []string) map[string][]byte {
	view := h.out.placed[connection][typeURL]
	key := fmt.Sprint(view, names)
	if h.asked[key] {
		return h.out.resources(view)
	}
	h.asked[key] = true
	return h.get(connection, typeURL, names...)
}

func (h *history) same(step int, connection uint64, name string, got, want []byte) {
	h.t.Helper()
	if !bytes.Equal(got, want) {
		h.t.Fatalf("step %d: connection %d: %s: %d bytes differ from the %d from scratch", step, connection, name, len(got), len(want))
	}
}

// TestOvertakingEndsWhereCommitsDo runs both at once; the race detector watches.
func TestOvertakingEndsWhereCommitsDo(t *testing.T) {
	w := newWorld(t)
	w.commit(web("10.1.0.1")...)
	w.attach(1, proxy(sidecarID, nil, nil))
	w.get(1, encode.EndpointType, webCluster)
	base := w.builder.State()
	done := make(chan error)
	go func() {
		defer close(done)
		for i := range 100 {
			row := webEndpoint(fmt.Sprintf("10.1.1.%d", i))
			change := state.With(base, state.Revision{Number: 1000 + uint64(i)}, []*pb.TableRows{{Table: state.Endpoints, Upserts: []*pb.Row{row}}})
			if err := w.e.Overtake(context.Background(), change, w.out); err != nil {
				done <- err
				return
			}
		}
	}()
	for i := range 100 {
		w.commit(rows(state.Endpoints, webEndpoint(fmt.Sprintf("10.1.2.%d", i))))
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := addresses(t, w.out.resources(w.out.placed[1][encode.EndpointType])[webCluster]); len(got) != 201 {
		t.Errorf("%d endpoints, want all 201", len(got))
	}
}
