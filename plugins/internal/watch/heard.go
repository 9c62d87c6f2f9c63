package watch

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// heard is what fsnotify has said and nobody has taken yet. fsnotify waits, with its lock held,
// until what it says is heard; whoever adds a watch meanwhile waits for that lock. So somebody else
// listens all the time.
type heard struct {
	// some has something when there is something to take; ended is closed when fsnotify has ended.
	some, ended chan struct{}

	mu sync.Mutex
	// paths are when something was last said of them.
	paths map[string]time.Time
	err   error
}

// said is a path, and when something was said of it.
type said struct {
	path string
	at   time.Time
}

func newHeard() *heard {
	return &heard{some: make(chan struct{}, 1), ended: make(chan struct{}), paths: map[string]time.Time{}}
}

// listen hears everything until both channels are closed.
func (h *heard) listen(events <-chan fsnotify.Event, errs <-chan error) {
	defer close(h.ended)
	for events != nil || errs != nil {
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
			} else if e.Name != "" {
				h.hear(func() { h.paths[e.Name] = time.Now() })
			}
		case err, ok := <-errs:
			if !ok {
				errs = nil
			} else {
				h.hear(func() { h.err = cmp.Or(h.err, err) })
			}
		}
	}
}

func (h *heard) hear(note func()) {
	h.mu.Lock()
	note()
	h.mu.Unlock()
	select {
	case h.some <- struct{}{}:
	default:
	}
}

// drain returns the paths in the order in which they were last heard of, and the first error.
func (h *heard) drain() (all []said, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(h.paths)) {
		all = append(all, said{path, h.paths[path]})
	}
	slices.SortStableFunc(all, func(a, b said) int { return a.at.Compare(b.at) })
	err, h.err = h.err, nil
	clear(h.paths)
	return all, err
}
