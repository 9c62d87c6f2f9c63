package fleet

import (
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Followed are addresses of endpoints, and when sidecars got them.
type Followed struct {
	number map[string]int
	// got is how many sidecars have an address, and last when the latest of them got it, in Unix
	// nanoseconds; by number.
	got  []atomic.Int64
	last []atomic.Int64
	// seen says which addresses a sidecar has; each is used by its own sidecar alone.
	seen [][]bool
}

// Follow notes from now on when sidecars get addresses that they had not before.
func (f *Fleet) Follow(addresses []string) *Followed {
	n := len(addresses)
	w := &Followed{number: make(map[string]int, n), got: make([]atomic.Int64, n), last: make([]atomic.Int64, n), seen: make([][]bool, len(f.sidecars))}
	for i, a := range addresses {
		w.number[a] = i
	}
	for i := range w.seen {
		w.seen[i] = make([]bool, n)
	}
	f.followed.Store(w)
	return w
}

// Last returns how many sidecars have got an address, by its place in what is followed, and when
// the latest of them got it.
func (w *Followed) Last(i int) (sidecars int, at time.Time) {
	return int(w.got[i].Load()), time.Unix(0, w.last[i].Load())
}

// addressPath leads from a response of load assignments to the addresses in them: resources, their
// values, localities, endpoints, the endpoint itself, its address, the socket's, and that as text.
var addressPath = []protowire.Number{responseResources, anyValue, 2, 2, 1, 1, 1, 2}

// arrived notes the addresses of a response.
func (w *Followed) arrived(sidecar int, response []byte) {
	now := time.Now().UnixNano()
	dig(response, func(address []byte) {
		i, ok := w.number[string(address)]
		if !ok || w.seen[sidecar][i] {
			return
		}
		w.seen[sidecar][i] = true
		w.got[i].Add(1)
		for was := w.last[i].Load(); was < now && !w.last[i].CompareAndSwap(was, now); was = w.last[i].Load() {
			continue
		}
	}, addressPath...)
}
