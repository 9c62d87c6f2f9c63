package state

import (
	"maps"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Source reads rows that are kept elsewhere, as a WASM plugin's are by its runner. Its methods
// block; they may be called by several goroutines. What can't be read counts as absent: whoever
// made the source knows of it.
type Source interface {
	// Row returns a row, nil where there is none.
	Row(table, key string) *pb.Row
	// Rows returns all rows of a table.
	Rows(table string) []*pb.Row
}

// Remote returns a state whose rows are read from a source when they are looked at, each once.
func Remote(revision Revision, from Source) *State {
	return &State{revision: revision, remote: &remote{source: from, tables: map[string]*Table{}}}
}

// remote makes the tables of a remote state.
type remote struct {
	source Source
	mu     sync.Mutex
	tables map[string]*Table
}

func (r *remote) table(name string) *Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tables[name]
	if t == nil {
		t = &Table{far: &far{source: r.source, name: name, seen: map[string]*pb.Row{}}}
		r.tables[name] = t
	}
	return t
}

// far is a table that is read from a source.
type far struct {
	source Source
	name   string

	mu    sync.Mutex
	seen  map[string]*pb.Row
	whole map[string]*pb.Row
}

func (f *far) get(key string) *pb.Row {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.whole != nil {
		return f.whole[key]
	}
	row, seen := f.seen[key]
	if !seen {
		row = f.source.Row(f.name, key)
		f.seen[key] = row
	}
	return row
}

// all returns the whole table.
func (f *far) all() map[string]*pb.Row {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.whole == nil {
		f.whole = map[string]*pb.Row{}
		for _, r := range f.source.Rows(f.name) {
			f.whole[r.Key] = r
		}
		maps.DeleteFunc(f.seen, func(string, *pb.Row) bool { return true })
	}
	return f.whole
}
