package xds

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// shard is a Publisher that keeps what was published.
type shard struct {
	mu     sync.Mutex
	rows   map[string]map[string]*sdk.Row
	synced bool
	// updates are how often each table was.
	updates map[string]int
	lines   []string
}

func newShard() *shard {
	return &shard{rows: map[string]map[string]*sdk.Row{}, updates: map[string]int{}}
}

func (s *shard) Update(table string, upserts []*sdk.Row, deletes []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[table] == nil {
		s.rows[table] = map[string]*sdk.Row{}
	}
	s.updates[table]++
	for _, r := range upserts {
		s.rows[table][r.Key] = r
	}
	for _, k := range deletes {
		delete(s.rows[table], k)
	}
	return nil
}

func (s *shard) Synced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = true
	return nil
}

func (s *shard) State() (*state.State, <-chan struct{}) { return &state.State{}, nil }

func (s *shard) Log(_ sdk.Level, text string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, text+" "+fmt.Sprint(args...))
}

// keys are those of a table, sorted.
func (s *shard) keys(table string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.rows[table]))
}

func (s *shard) inSync() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

func (s *shard) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// faults are what is shown, as FILE SEVERITY MESSAGE.
func (s *shard) faults(t *testing.T) (all []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.rows[state.Faults] {
		var f kinds.Fault
		if err := json.Unmarshal(r.Payload, &f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f.File+" "+f.Severity.String()+" "+f.Text())
	}
	slices.Sort(all)
	return all
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
