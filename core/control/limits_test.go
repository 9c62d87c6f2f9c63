package control

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

// A plugin that crosses a limit of what it may say ends, with the limit in the reason; the one
// beside it never notices, and what it said before counts.
func TestLimitsOfRows(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		limits state.Limits
		// fine is taken, worse is not.
		fine, worse func(p *plugin)
		name, want  string
	}{
		{state.Limits{Rows: 3},
			func(p *plugin) {
				p.rows("services", nil, row("a", "1"), row("b", "1"))
				p.rows("services", nil, row("a", "2"), row("b", "2"), row("c", "1"))
			},
			func(p *plugin) { p.rows("endpoints", nil, row("d", "1")) }, "rows", "more than 3 rows (limits.rows)"},
		{state.Limits{RowBytes: 500},
			func(p *plugin) { p.rows("services", nil, row("a", long[:400])) },
			func(p *plugin) { p.rows("services", nil, row("b", long)) }, "rowBytes", `row "b" of table "services" with 1`},
		{state.Limits{Bytes: 2500},
			func(p *plugin) {
				for range 9 { // as the same row takes the place of the one before
					p.rows("services", nil, row("a", long), row("b", long))
				}
				p.send(&pb.FromPlugin{Rows: &pb.Rows{Tables: []*pb.TableRows{{Table: "services", Deletes: []string{"a", "nobody"}}}}})
				p.rows("endpoints", nil, row("c", long))
			},
			func(p *plugin) { p.rows("endpoints", nil, row("d", long)) }, "bytes", "more than 2500 bytes of rows (limits.bytes)"},
		{state.Limits{Message: 1500},
			func(p *plugin) { p.rows("services", nil, row("a", long)) },
			func(p *plugin) { p.rows("services", nil, row("a", long), row("b", long)) }, "messageBytes", "more than it may (limits.messageBytes, 1500)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := memory
				held.Limits = c.limits
				b := newBench(t, nil, held, files)
				m, f := b.join("memory", readyMemory()), b.join("files", readyFiles())
				f.synced()
				c.fine(m)
				m.synced()
				time.Sleep(time.Second)
				rows := b.PluginRows()["memory"].Rows
				if rows == 0 || len(m.end) > 0 {
					t.Fatalf("what keeps the limit was refused: %d rows", rows)
				}
				c.worse(m)
				err := <-m.end
				if err == nil || !strings.Contains(err.Error(), c.want) || carrier.CrossedLimit(err) != c.name {
					t.Errorf("the session ended with %v", err)
				}
				time.Sleep(time.Second)
				if now := b.PluginRows()["memory"].Rows; now != rows || len(f.end) > 0 {
					t.Errorf("%d rows are served, %d before; the other one has ended: %v", now, rows, len(f.end) > 0)
				}
			})
		})
	}
}

// crossings counts limits that were crossed.
type crossings struct {
	state.NoMetrics
	mu  sync.Mutex
	all []string
}

func (c *crossings) Crossed(plugin, limit string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, plugin+" "+limit)
}

// A module's runner that gives up a call says so in its answer: that counts as the core's own
// giving up does.
func TestLimitsOfCallsInModules(t *testing.T) {
	for limit, want := range map[string]string{"call": "tokens call", "wasm.memory": "tokens wasm.memory", "": "", "own": ""} {
		synctest.Test(t, func(t *testing.T) {
			counts := &crossings{}
			b := newBench(t, func(c *Config) { c.Metrics = counts }, state.Expected{Name: "tokens", Kind: pb.KindAuthenticator})
			tokens := b.join("tokens", &pb.Ready{})
			got := (&gate{bench: b}).call(t.Context(), nil)
			tokens.send(&pb.FromPlugin{Caller: &pb.Caller{Id: asked(tokens).Id, Failure: "no", Limit: limit}})
			<-got
			if got := strings.Join(counts.all, ","); got != want {
				t.Errorf("%s: counted %q, want %q", limit, got, want)
			}
		})
	}
}

// TestBodiesAreLimited: a generator whose resources take too much of the core's memory fails alone;
// what it made before stays served.
func TestBodiesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.mu.Lock()
		w.mid.State.Roster.Plugins["istio"].Expected.Limits.Bodies = 4096
		w.mu.Unlock()
		w.g.send(body(2, strings.Repeat("x", 3000)))
		select {
		case err := <-w.g.end:
			t.Fatalf("it ended below the limit: %v", err)
		default:
		}
		w.g.send(body(3, strings.Repeat("y", 3000)))
		synctest.Wait()
		if err := <-w.g.end; err == nil || carrier.CrossedLimit(err) != "bodies" {
			t.Errorf("the session ended with %v", err)
		}
		w.expect("a=v1")
	})
}
