package analysis

import "slices"

// work is what is to stand in objects' statuses, and of which it is still to be written. It has no
// clock and asks nobody.
type work struct {
	// want is what is to be said, of each object that there is.
	want map[ref][]message
	// has is what is known to stand in statuses: what was read, or written; objects without
	// messages are not in it.
	has map[ref][]message
	// queue are objects that are to be written, queued the same as a set.
	queue  []ref
	queued map[ref]bool
}

func newWork() *work { return &work{has: map[ref][]message{}, queued: map[ref]bool{}} }

// take takes what is to be said now, and queues what is otherwise.
func (w *work) take(want map[ref][]message) {
	w.want = want
	for at := range w.has {
		if _, ok := want[at]; !ok {
			delete(w.has, at) // it has gone, and its status with it
		}
	}
	for at := range want {
		w.compare(at)
	}
}

// saw takes what stands in an object's status.
func (w *work) saw(at ref, list []message) {
	if len(list) == 0 {
		delete(w.has, at)
	} else {
		w.has[at] = list
	}
	w.compare(at)
}

// compare queues an object whose status is not what it is to be. Objects that no source publishes
// are nobody's here.
func (w *work) compare(at ref) {
	if want, ok := w.want[at]; ok && !slices.Equal(want, w.has[at]) {
		w.again(at)
	}
}

// again queues an object, if it isn't queued.
func (w *work) again(at ref) {
	if !w.queued[at] {
		w.queued[at] = true
		w.queue = append(w.queue, at)
	}
}

// next takes the object that is to be written next, and what is to be said of it; false: there is
// none. What has become right meanwhile is left out.
func (w *work) next() (at ref, want []message, ok bool) {
	for len(w.queue) > 0 {
		at, w.queue = w.queue[0], w.queue[1:]
		delete(w.queued, at)
		if want, ok = w.want[at]; ok && !slices.Equal(want, w.has[at]) {
			return at, want, true
		}
	}
	w.queue = nil
	return ref{}, nil, false
}
