package istio

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// event is something that happens to an engine: rows change, or a proxy comes (proxy) or goes.
type event struct {
	changes []*pb.TableRows
	// overtakes: endpoints that come ahead of the revision that has them.
	overtakes  bool
	connection uint64
	proxy      *sdk.Proxy
}

// String says what happens, for people who look for the reason of a failure.
func (e event) String() string {
	switch {
	case e.proxy != nil:
		return fmt.Sprintf("connection %d begins: %.120q", e.connection, e.proxy.Node)
	case e.changes == nil:
		return fmt.Sprintf("connection %d ends", e.connection)
	}
	var out []string
	for _, c := range e.changes {
		for _, r := range c.Upserts {
			out = append(out, fmt.Sprintf("%s %s as in %s (%d bytes)", c.Table, r.Key, r.Source, len(r.Payload)))
		}
		for _, key := range c.Deletes {
			out = append(out, fmt.Sprintf("no %s %s", c.Table, key))
		}
	}
	if e.overtakes {
		out = append(out, "overtaking")
	}
	return strings.Join(out, "; ")
}

// author thinks of events.
type author struct {
	pool *pool
	rand *rand.Rand
	// theme is the case that most is taken from at present.
	theme    poolCase
	rows     map[string]map[string]bool
	attached []uint64
	next     uint64
}

// mostRows is how many there may be: what starts afresh at each step is small.
const mostRows, mostProxies = 120, 4

func newAuthor(p *pool, r *rand.Rand) *author {
	return &author{pool: p, rand: r, theme: oneOf(r, p.cases), rows: map[string]map[string]bool{}}
}

func (a *author) event() event {
	switch n := a.rand.IntN(100); {
	case len(a.attached) == 0, n < 15 && len(a.attached) < mostProxies:
		return a.connect()
	case n < 22 && len(a.attached) > 1:
		return a.disconnect()
	case a.size() > mostRows, n < 28:
		return a.shed()
	case n < 42:
		return a.adopt()
	case n < 60:
		return event{changes: a.edits([]string{state.Endpoints}), overtakes: a.rand.IntN(2) == 0}
	default:
		return event{changes: a.edits(a.pool.tables)}
	}
}

func (a *author) size() int {
	n := 0
	for _, rows := range a.rows {
		n += len(rows)
	}
	return n
}

func (a *author) connect() event {
	a.next++
	a.attached = append(a.attached, a.next)
	of := a.theme
	if a.rand.IntN(4) == 0 {
		of = oneOf(a.rand, a.pool.cases)
	}
	return event{connection: a.next, proxy: oneOf(a.rand, of.proxies)}
}

func (a *author) disconnect() event {
	i := a.rand.IntN(len(a.attached))
	c := a.attached[i]
	a.attached = slices.Delete(a.attached, i, i+1)
	return event{connection: c}
}

// adopt takes most of another case.
func (a *author) adopt() event {
	a.theme = oneOf(a.rand, a.pool.cases)
	var out []*pb.TableRows
	for _, t := range a.theme.tables {
		c := &pb.TableRows{Table: t.Table}
		for _, r := range t.Upserts {
			if a.rand.IntN(5) > 0 && len(c.Upserts) < mostRows/4 {
				c.Upserts = append(c.Upserts, r)
				a.note(t.Table, r.Key, true)
			}
		}
		out = append(out, c)
	}
	return event{changes: out}
}

// shed takes rows away.
func (a *author) shed() event {
	var out []*pb.TableRows
	for _, table := range slices.Sorted(maps.Keys(a.rows)) {
		c := &pb.TableRows{Table: table}
		for _, key := range slices.Sorted(maps.Keys(a.rows[table])) {
			if a.rand.IntN(3) == 0 {
				c.Deletes = append(c.Deletes, key)
				a.note(table, key, false)
			}
		}
		out = append(out, c)
	}
	return event{changes: out}
}

// edits sets some rows, and takes others away.
func (a *author) edits(tables []string) []*pb.TableRows {
	out := []*pb.TableRows{}
	seen := map[string]bool{}
	for range 1 + a.rand.IntN(4) {
		table := oneOf(a.rand, tables)
		row := a.row(table)
		switch n := a.rand.IntN(12); {
		case n == 0 && table != config.KeySets: // these are text, whatever it is
			row = unreadable(row)
		case n < 4:
			row = ofAge(a.rand, row)
		}
		key := row.Key
		c := &pb.TableRows{Table: table}
		if here := slices.Sorted(maps.Keys(a.rows[table])); len(here) > 0 && a.rand.IntN(3) == 0 {
			key = oneOf(a.rand, here)
			c.Deletes = []string{key}
		} else {
			c.Upserts = []*pb.Row{row}
		}
		if seen[table+key] {
			continue
		}
		seen[table+key] = true
		a.note(table, key, c.Upserts != nil)
		out = append(out, c)
	}
	return out
}

// row is usually one of the theme.
func (a *author) row(table string) *pb.Row {
	if a.rand.IntN(2) == 0 {
		for _, t := range a.theme.tables {
			if t.Table == table {
				return oneOf(a.rand, t.Upserts)
			}
		}
	}
	return a.pool.row(a.rand, table)
}

func (a *author) note(table, key string, there bool) {
	if a.rows[table] == nil {
		a.rows[table] = map[string]bool{}
	}
	if there {
		a.rows[table][key] = true
	} else {
		delete(a.rows[table], key)
	}
}
