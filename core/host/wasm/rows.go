package wasm

import (
	"slices"
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// stateTag is the first byte of an encoded FromCore that is a State: field 5, of wire type 2.
const stateTag = 5<<3 | 2

// rows are the tables that a plugin reads, as the runner keeps them. The core's messages go in on
// one side; on the other, a module is at the revision that it has read.
type rows struct {
	mu      sync.Mutex
	builder state.Builder
	open    bool
	early   []*pb.State
	newest  *state.State
	// sent are states on their way to the module, in order; nil for a message that completed none.
	sent []*state.State
	at   *state.State
	keys map[*state.Table][]string
}

func newRows() *rows {
	return &rows{newest: &state.State{}, at: &state.State{}, keys: map[*state.Table][]string{}}
}

// apply takes in a State of the core that will be sent on.
func (r *rows) apply(m *pb.State) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Overtakes && r.open {
		r.early = append(r.early, m)
		r.sent = append(r.sent, nil)
		return nil
	}
	complete := r.newest
	for n, one := range append([]*pb.State{m}, r.early...) {
		if n > 0 && m.More {
			break
		}
		change, err := r.builder.Apply(one)
		if err != nil {
			return err
		}
		if change != nil {
			complete = change.State
		}
	}
	if r.open = m.More; !r.open {
		r.early = nil
	}
	if complete == r.newest {
		r.sent = append(r.sent, nil)
		return nil
	}
	r.newest = complete
	clear(r.keys)
	r.sent = append(r.sent, complete)
	return nil
}

// read notes that the module has read a frame.
func (r *rows) read(frame []byte) {
	if len(frame) == 0 || frame[0] != stateTag {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sent) == 0 {
		return
	}
	if s := r.sent[0]; s != nil {
		r.at = s
	}
	r.sent[0], r.sent = nil, r.sent[1:]
}

// current is the newest state; for modules that are sent none.
func (r *rows) current() *state.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = nil
	return r.newest
}

// reached is the state that the module has read.
func (r *rows) reached() *state.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

// got answers a Get from a state, with as many rows as fit into a message.
func (r *rows) got(s *state.State, m *pb.Get) *pb.Got {
	got := &pb.Got{Id: m.Id}
	if m.Table == "" {
		got.Error = "Get names no table"
		return got
	}
	table := s.Table(m.Table)
	size := 0
	for _, key := range r.wanted(table, m) {
		row := table.Get(key)
		if row == nil {
			continue
		}
		n := row.Size() + 8
		if m.Limit > 0 && len(got.Rows) >= int(m.Limit) || len(got.Rows) > 0 && size+n > room {
			got.More = true
			return got
		}
		got.Rows, size = append(got.Rows, row), size+n
	}
	return got
}

// wanted returns the keys that a Get asks for: those that it names, or the range.
func (r *rows) wanted(t *state.Table, m *pb.Get) []string {
	if len(m.Keys) > 0 {
		return m.Keys
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keys, ok := r.keys[t]
	if !ok {
		keys = t.Keys()
		r.keys[t] = keys
	}
	from, _ := slices.BinarySearch(keys, m.From)
	to := len(keys)
	if m.To != "" {
		to, _ = slices.BinarySearch(keys, m.To)
	}
	return keys[from:max(from, to)]
}
