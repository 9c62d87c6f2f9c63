package state

import (
	"sync"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Decoder decodes the payloads of a table's rows when they are first read, and remembers them while
// the rows stay as they are. It may be used by several goroutines.
type Decoder[T any] struct {
	decode func([]byte) (T, error)
	mu     sync.RWMutex
	known  map[string]decoded[T]
}

// decoded belongs to one row: rows never change, a new one has another address.
type decoded[T any] struct {
	row   *pb.Row
	value T
	err   error
}

// NewDecoder makes a decoder of payloads.
func NewDecoder[T any](decode func([]byte) (T, error)) *Decoder[T] {
	return &Decoder[T]{decode: decode, known: map[string]decoded[T]{}}
}

// Of makes a decoder of a message of the contract, such as Service: state.Of[pb.Service]().
func Of[T any, P interface {
	*T
	Unmarshal([]byte) error
}]() *Decoder[*T] {
	return NewDecoder(func(b []byte) (*T, error) {
		m := P(new(T))
		return m, m.Unmarshal(b)
	})
}

// Get returns the decoded payload of a table's row; the zero value and false where there is no such
// row or it can't be decoded. Values are shared: read only.
func (d *Decoder[T]) Get(t *Table, key string) (T, bool) {
	row := t.Get(key)
	if row == nil {
		var zero T
		return zero, false
	}
	v, err := d.Row(row)
	return v, err == nil
}

// Row returns a row's decoded payload. Shared: read only.
func (d *Decoder[T]) Row(row *pb.Row) (T, error) {
	d.mu.RLock()
	known, ok := d.known[row.Key]
	d.mu.RUnlock()
	if ok && known.row == row {
		return known.value, known.err
	}
	known = decoded[T]{row: row}
	known.value, known.err = d.decode(row.Payload)
	d.mu.Lock()
	d.known[row.Key] = known
	d.mu.Unlock()
	return known.value, known.err
}

// Forget lets go of rows that a change deleted. Without it a decoder grows with the number of keys
// that ever were.
func (d *Decoder[T]) Forget(table string, change *Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if change.Before == nil {
		clear(d.known)
		return
	}
	for _, key := range change.Keys[table] {
		if change.State.Row(table, key) == nil {
			delete(d.known, key)
		}
	}
}
