package kube

import "k8s.io/client-go/tools/cache"

// Informer keeps the objects of a kind, and tells a handler of each.
type Informer struct {
	cache.SharedIndexInformer
	told cache.ResourceEventHandlerRegistration
}

// Tell adds the handler of an informer that doesn't run yet.
func Tell(i cache.SharedIndexInformer, handler cache.ResourceEventHandler) (*Informer, error) {
	told, err := i.AddEventHandler(handler)
	if err != nil {
		return nil, err
	}
	return &Informer{i, told}, nil
}

// HasSynced reports whether the handler has been told of all objects of the first list. They are
// kept before: who makes rows of what the handler is told would take a part of them for all.
func (i *Informer) HasSynced() bool { return i.told.HasSynced() }
