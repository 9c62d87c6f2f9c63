package plugintest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// records is a config source that makes rows of each of a number of records: one in each of its
// tables, which may name the same table more than once.
type records struct {
	n      atomic.Int64
	tables []string
}

func (r *records) plugin() sdk.Declaration {
	return sdk.ConfigSourcePlugin{
		Name: "records", Version: "1", Publishes: []string{"example.com/A", "example.com/B"},
		New: sdk.WithoutConfig(func() (sdk.ConfigSource, error) { return r, nil }),
	}
}

func (r *records) Run(ctx context.Context, out sdk.Publisher) error {
	had := int64(0)
	for first := true; ctx.Err() == nil; first = false {
		n := r.n.Load()
		for i := min(had, n); i < max(had, n); i++ {
			for j, table := range r.tables {
				key := fmt.Sprintf("x/%d-%d", i, j)
				var rows []*sdk.Row
				var gone []string
				if i < n {
					rows = append(rows, &sdk.Row{Key: key, Payload: []byte(key)})
				} else {
					gone = append(gone, key)
				}
				if err := out.Update(table, rows, gone); err != nil {
					return err
				}
			}
		}
		if had = n; first {
			if err := out.Synced(); err != nil {
				return err
			}
		}
		_ = sdk.Sleep(ctx, time.Millisecond)
	}
	return nil
}

func (r *records) suite(only string) plugintest.Suite {
	return plugintest.Suite{Kind: "config", Only: only, Many: 2000, Source: func(n int) error { r.n.Store(int64(n)); return nil }}
}

// TestRecordsOfTwoTables: a record that makes a row in each of two tables counts as one.
func TestRecordsOfTwoTables(t *testing.T) {
	r := &records{tables: []string{"example.com/A", "example.com/B"}}
	plugintest.Conform(t, r.suite(""), plugintest.Memory(r.plugin()))
}

// TestWrongNumberIsNamed: where a plugin has another number of rows than the source, the suite says
// so, by table, once the plugin has been silent for a while, and meanwhile what it waits for.
func TestWrongNumberIsNamed(t *testing.T) {
	r := &records{tables: []string{"example.com/A", "example.com/A", "example.com/B"}}
	var mu sync.Mutex
	var told []string
	s := r.suite("flapping")
	s.Lag = 6 * time.Second
	s.Progress = func(name, waits string, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, name+": "+waits)
	}
	var failures []string
	s.Run(plugintest.Memory(r.plugin()), func(got plugintest.Result) { failures = append(failures, got.Failures...) })
	if text := strings.Join(failures, "\n"); len(failures) != 1 ||
		!strings.Contains(text,
			"wanted 2 rows (in all, or in the table that has most); the plugin has 6 (4 example.com/A, 2 example.com/B), and has published nothing more for ") {
		t.Errorf("%v", failures)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) == 0 || !strings.Contains(told[0], "flapping: waiting for 2 rows (in all, or in the table that has most), the plugin has 6 (") {
		t.Errorf("%v", told)
	}
}
