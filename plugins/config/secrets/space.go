package secrets

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// space is a namespace's objects of a kind. follower.mu guards it.
type space struct {
	place
	objects map[string]*watched // by name
	// wide is the watch of the metadata of all objects of the kind that the namespace has; nil:
	// there is none. refused: there may be none, until it is tried again.
	wide    *wideWatch
	refused bool
}

// wideWatch is a watch of metadata. synced: what there was is known.
type wideWatch struct {
	stop     context.CancelFunc
	informer *kube.Informer
	synced   bool
}

func (p place) String() string { return resourceOf(p.kind).Resource + " of namespace " + p.namespace }

// widen begins to watch the metadata of a namespace, if there is room and it may be. f.mu is held.
func (f *follower) widen(s *space) {
	if s.wide != nil || s.refused || f.wides[s.kind] >= f.bounds.wide {
		return
	}
	ctx, stop := context.WithCancel(f.ctx)
	wide := &wideWatch{stop: stop}
	changed := func(object any) { f.stirred(s, wide, object) }
	informer, err := kube.FollowMetadata(f.client.Metadata.Resource(resourceOf(s.kind)).Namespace(s.namespace), leanMetadata,
		cache.ResourceEventHandlerFuncs{AddFunc: changed, UpdateFunc: func(_, after any) { changed(after) }, DeleteFunc: changed},
		func(err error) {
			if forbidden(err) {
				err = fmt.Errorf("their metadata can't be watched, so that more than %d of them are read one by one, now and then: %w", f.bounds.names, err)
				f.refuse(s, wide)
			}
			f.failed(s.String(), err)
		})
	if err != nil {
		stop()
		f.failed(s.String(), err)
		return
	}
	wide.informer, s.wide = informer, wide
	f.wides[s.kind]++
	f.running.Go(func() { informer.RunWithContext(ctx) })
	f.running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			f.synced(s, wide)
		}
	})
}

// narrow ends the watch of a namespace. f.mu is held.
func (f *follower) narrow(s *space) {
	if s.wide != nil {
		s.wide.stop()
		s.wide = nil
		f.wides[s.kind]--
	}
}

// synced lets a namespace's watch take the place of those of its objects, and of polling them.
func (f *follower) synced(s *space, wide *wideWatch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.wide != wide {
		return
	}
	wide.synced = true
	for _, w := range s.objects {
		f.unwatch(w)
		w.polled = false
		f.place(w)
	}
}

// place reads an object as its namespace's metadata has it. f.mu is held.
func (f *follower) place(w *watched) {
	o := w.object
	found, there, _ := w.in.wide.informer.GetStore().GetByKey(o.Namespace + "/" + o.Name)
	switch {
	case there && (!w.known || versionOf(found) != w.version):
		f.read(w)
	case there:
	case w.version != "" || w.busy: // what is being read may be older than that it went
		f.read(w)
	default:
		f.say(w, secrets.Content{}, none(o), true)
	}
}

// stirred hears that something has changed in a namespace.
func (f *follower) stirred(s *space, wide *wideWatch, object any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return
	}
	_, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.wide != wide || !wide.synced {
		return // synced looks at all that there is
	}
	if w := s.objects[name]; w != nil {
		f.place(w)
	}
}

// refuse ends a watch that is forbidden; what it followed is polled, until it is tried again.
func (f *follower) refuse(s *space, wide *wideWatch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.wide != wide {
		return
	}
	f.narrow(s)
	s.refused = true
	for _, w := range s.objects {
		if w.own == nil {
			f.poll(w)
		}
	}
	time.AfterFunc(f.bounds.again, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if s.refused = false; f.ctx.Err() == nil && f.spaces[s.place] == s && len(s.objects) > f.bounds.names {
			f.widen(s)
		}
	})
}

// leanMetadata leaves of an object's metadata what says which it is.
func leanMetadata(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, ResourceVersion: m.ResourceVersion, UID: m.UID,
	}}, nil
}

func versionOf(object any) string {
	m, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}
