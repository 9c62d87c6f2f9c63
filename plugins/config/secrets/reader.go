package secrets

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

const (
	// readers is how many objects of a kind are read at once.
	readers = 4
	// soonest and latest are when an object is read again that could not be.
	soonest, latest = time.Second, time.Minute
	// readingFor is how long a read may take.
	readingFor = 10 * time.Second
)

// reader reads objects of a kind that have no watch of their own, each once at a time.
type reader struct {
	queue   workqueue.TypedDelayingInterface[secrets.Object]
	failing workqueue.TypedRateLimiter[secrets.Object]
	// turns are how many a second are read again.
	turns *rate.Limiter
}

func (f *follower) newReader() *reader {
	r := &reader{
		queue:   workqueue.NewTypedDelayingQueue[secrets.Object](),
		failing: workqueue.NewTypedItemExponentialFailureRateLimiter[secrets.Object](soonest, latest),
		turns:   rate.NewLimiter(rate.Limit(f.bounds.polls), int(max(1, f.bounds.polls))),
	}
	for range readers {
		f.running.Go(func() {
			for {
				o, over := r.queue.Get()
				if over {
					return
				}
				f.reread(r, o)
				r.queue.Done(o)
			}
		})
	}
	f.running.Go(func() {
		<-f.ctx.Done()
		r.queue.ShutDown()
	})
	return r
}

// read reads an object as soon as it can be. f.mu is held.
func (f *follower) read(w *watched) { f.reads[w.object.Kind].queue.Add(w.object) }

// poll reads an object again and again, in turn with others that nothing follows. f.mu is held.
func (f *follower) poll(w *watched) {
	if !w.polled {
		w.polled = true
		f.reads[w.object.Kind].later(w.object, 0)
	}
}

// later reads an object after a time, when it is its turn.
func (r *reader) later(o secrets.Object, after time.Duration) {
	r.queue.AddAfter(o, after+r.turns.Reserve().Delay())
}

// reread reads an object, if it is still to be read.
func (f *follower) reread(r *reader, o secrets.Object) {
	w := f.reading(o)
	if w == nil {
		r.failing.Forget(o)
		return
	}
	content, version, err := f.get(o)
	if err != nil && f.ctx.Err() == nil {
		f.failed(place{o.Kind, o.Namespace}.String(), err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.objects[o] != w {
		return // it was let go, and may be followed anew
	}
	w.busy = false
	if err != nil {
		if forbidden(err) {
			f.say(w, secrets.Content{}, denied(o), false)
		}
		r.later(o, r.failing.When(o))
		return
	}
	r.failing.Forget(o)
	w.version = version
	f.say(w, content.Content, content.absent, true)
	if w.polled {
		r.later(o, f.bounds.poll)
	}
}

// reading begins to read an object; nil: it is not followed, or by its own watch.
func (f *follower) reading(o secrets.Object) *watched {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.objects[o]
	if w == nil || w.own != nil {
		return nil
	}
	w.busy = true
	return w
}

// what is an object's values, or why there are none.
type what struct {
	secrets.Content
	absent string
}

// get reads an object; version is empty where there is none. It lists what has its name, which
// needs no other right than watching it does.
func (f *follower) get(o secrets.Object) (found what, version string, err error) {
	ctx, cancel := context.WithTimeout(f.ctx, readingFor)
	defer cancel()
	list, err := f.client.Objects.Resource(resourceOf(o.Kind)).Namespace(o.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + o.Name})
	if err != nil {
		return found, "", err
	}
	for i := range list.Items {
		if u := &list.Items[i]; u.GetName() == o.Name {
			found.Content, found.absent = contentOf(o, u)
			return found, u.GetResourceVersion(), nil
		}
	}
	return what{absent: none(o)}, "", nil
}
