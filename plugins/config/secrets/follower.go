package secrets

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// bounds are how objects are followed, and how many at most in each way. Numbers are for a kind.
type bounds struct {
	// names of one namespace that are watched one by one: beyond it one watch of the namespace's
	// metadata takes their place.
	names int
	// single and wide are watches of single objects, and of namespaces. What neither follows is
	// polled.
	single, wide int
	// poll is how often an object is read that nothing else follows, polls how many of these a
	// second.
	poll  time.Duration
	polls float64
	// again is when a namespace's watch that was forbidden is tried again.
	again time.Duration
}

// usual are the bounds that count.
var usual = bounds{names: 32, single: 512, wide: 256, poll: time.Minute, polls: 10, again: time.Minute}

// follower follows objects: each by a watch of its own, by one of its namespace's metadata where
// many of it are wanted, or by reading it again and again.
type follower struct {
	bounds  bounds
	ctx     context.Context
	running *sync.WaitGroup
	client  *kube.Client
	// changed is called, with mu held, where there is something new to say of an object; failed
	// when the API server can't be asked.
	changed func(secrets.Object)
	failed  func(what string, err error)

	mu      sync.Mutex
	objects map[secrets.Object]*watched
	spaces  map[place]*space
	reads   map[string]*reader // by kind
	// singles and wides count watches, by kind.
	singles, wides map[string]int
}

// place is where objects of a kind are.
type place struct{ kind, namespace string }

func newFollower(ctx context.Context, running *sync.WaitGroup, client *kube.Client, b bounds,
	changed func(secrets.Object), failed func(string, error)) *follower {
	f := &follower{
		bounds: b, ctx: ctx, running: running, client: client, changed: changed, failed: failed,
		objects: map[secrets.Object]*watched{}, spaces: map[place]*space{}, reads: map[string]*reader{},
		singles: map[string]int{}, wides: map[string]int{},
	}
	for _, kind := range []string{secrets.Secret, secrets.ConfigMap} {
		f.reads[kind] = f.newReader()
	}
	return f
}

// want begins to follow objects that are not followed yet.
func (f *follower) want(objects ...secrets.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var added []*watched
	for _, o := range objects {
		if f.objects[o] != nil {
			continue
		}
		at := place{o.Kind, o.Namespace}
		s := f.spaces[at]
		if s == nil {
			s = &space{place: at, objects: map[string]*watched{}}
			f.spaces[at] = s
		}
		w := &watched{object: o, in: s}
		f.objects[o], s.objects[o.Name] = w, w
		added = append(added, w)
	}
	for _, w := range added {
		f.begin(w)
	}
}

// begin begins to follow an object, in the way that there is room for. f.mu is held.
func (f *follower) begin(w *watched) {
	s, kind := w.in, w.object.Kind
	if len(s.objects) > f.bounds.names {
		f.widen(s)
	}
	switch {
	case s.wide != nil && s.wide.synced:
		f.place(w)
	case s.wide != nil: // its list is on its way
	case len(s.objects) <= f.bounds.names && f.singles[kind] < f.bounds.single:
		f.watch(w)
	default:
		f.poll(w)
	}
}

// drop lets go of an object.
func (f *follower) drop(o secrets.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.objects[o]
	if w == nil {
		return
	}
	f.unwatch(w)
	delete(f.objects, o)
	delete(w.in.objects, o.Name)
	if len(w.in.objects) == 0 {
		f.narrow(w.in)
		delete(f.spaces, w.in.place)
	}
}

// says returns what is known of an object, or why there is none; false: nothing yet.
func (f *follower) says(o secrets.Object) (content secrets.Content, absent string, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.objects[o]; w != nil {
		return w.content, w.absent, w.known
	}
	return secrets.Content{}, "", false
}

// complete reports whether all that is followed is known.
func (f *follower) complete() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.objects {
		if !w.known {
			return false
		}
	}
	return true
}
