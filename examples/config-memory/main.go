// Command config-memory is a config source that takes writes: it keeps objects of the table
// example.com/Note in memory, and publishes the spec of each as a row.
package main

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-mesh/coxswain/sdk"
)

const table = "example.com/Note"

func main() { sdk.Serve(plugin()) }

func plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name: "memory", Version: "1", Publishes: []string{table},
		New: sdk.WithoutConfig(func() (sdk.ConfigSource, error) { return newStore(), nil }),
	}
}

// store is the objects by NAMESPACE/NAME.
type store struct {
	mu      sync.Mutex
	objects map[string]*object
	version int
	// changed has the keys of objects that are to be published, and some says that there are any.
	changed map[string]bool
	some    chan struct{}
}

func newStore() *store {
	return &store{objects: map[string]*object{}, changed: map[string]bool{}, some: make(chan struct{}, 1)}
}

// Run publishes what is written. There is nothing in the beginning.
func (s *store) Run(ctx context.Context, out sdk.Publisher) error {
	if err := out.Synced(); err != nil {
		return err
	}
	for {
		select {
		case <-s.some:
		case <-ctx.Done():
			return nil
		}
		upserts, deletes := s.drain()
		if err := out.Update(table, upserts, deletes); err != nil {
			return err
		}
	}
}

// drain returns the rows of what has changed.
func (s *store) drain() (upserts []*sdk.Row, deletes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.changed {
		if o := s.objects[key]; o != nil {
			upserts = append(upserts, o.row())
		} else {
			deletes = append(deletes, key)
		}
	}
	clear(s.changed)
	return upserts, deletes
}

// Writes names the one table.
func (s *store) Writes() []string { return []string{table} }

// Get returns an object.
func (s *store) Get(_ context.Context, t, namespace, name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.find(t, namespace, name, "")
	return o.text(), err
}

// List returns objects in the order of their keys. The page's name is the last key before it.
func (s *store) List(_ context.Context, t, namespace string, p sdk.Page) (objects [][]byte, next string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t != table {
		return nil, "", unknown(t)
	}
	var keys []string
	for key := range s.objects {
		if key > p.Page && (namespace == "" || strings.HasPrefix(key, namespace+"/")) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if p.Limit > 0 && len(keys) > p.Limit {
		keys = keys[:p.Limit]
		next = keys[p.Limit-1]
	}
	for _, key := range keys {
		objects = append(objects, s.objects[key].text())
	}
	return objects, next, nil
}

// Create takes a new object, without its status.
func (s *store) Create(_ context.Context, t string, text []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := read(t, text)
	if err != nil {
		return nil, err
	}
	if s.objects[o.key()] != nil {
		return nil, fail(sdk.StoreAlreadyExists, "", o.key()+" is there already")
	}
	delete(o.rest, "status")
	return s.put(o)
}

// Update takes all but the status.
func (s *store) Update(_ context.Context, t string, text []byte) ([]byte, error) {
	return s.replace(t, text, func(given, kept *object) *object {
		given.take("status", kept)
		return given
	})
}

// UpdateStatus takes the status alone.
func (s *store) UpdateStatus(_ context.Context, t string, text []byte) ([]byte, error) {
	return s.replace(t, text, func(given, kept *object) *object {
		kept.take("status", given)
		return kept
	})
}

// replace puts what choose makes of a given object, and a copy of the one that is kept, in the
// latter's place.
func (s *store) replace(t string, text []byte, choose func(given, kept *object) *object) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	given, err := read(t, text)
	if err != nil {
		return nil, err
	}
	version, _ := given.meta()["resourceVersion"].(string)
	if version == "" {
		return nil, fail(sdk.StoreInvalid, "metadata.resourceVersion", "is missing: it says which version was changed")
	}
	kept, err := s.find(t, given.namespace(), given.name(), version)
	if err != nil {
		return nil, err
	}
	return s.put(choose(given, kept))
}

// Patch merges a patch, but for its status.
func (s *store) Patch(_ context.Context, t, namespace, name string, patch []byte, version string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var given map[string]any
	if err := decode(patch, &given); err != nil {
		return nil, err
	}
	o, err := s.find(t, namespace, name, version)
	if err != nil {
		return nil, err
	}
	delete(given, "status")
	o.rest = merged(o.rest, given)
	if _, err := read(t, o.text()); err != nil {
		return nil, err
	}
	if o.key() != namespace+"/"+name {
		return nil, fail(sdk.StoreInvalid, "metadata.name", "can't be changed")
	}
	return s.put(o)
}

// Delete deletes an object, or marks it if it has finalizers.
func (s *store) Delete(_ context.Context, t, namespace, name, version string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, err := s.find(t, namespace, name, version)
	if err != nil {
		return err
	}
	o.meta()["deletionTimestamp"] = "2026-01-01T00:00:00Z" // a real store has a clock
	_, err = s.put(o)
	return err
}

// find returns a copy of an object, which must have the version, if one is given.
func (s *store) find(t, namespace, name, version string) (*object, error) {
	switch {
	case t != table:
		return nil, unknown(t)
	case namespace == "" || name == "":
		return nil, fail(sdk.StoreInvalid, "", "an object is named by its namespace and its name")
	}
	o := s.objects[namespace+"/"+name]
	switch {
	case o == nil:
		return nil, fail(sdk.StoreNotFound, "", "there is no "+namespace+"/"+name)
	case version != "" && version != o.meta()["resourceVersion"]:
		return nil, fail(sdk.StoreConflict, "", namespace+"/"+name+" has changed since")
	}
	return o.copy(), nil
}

// put keeps an object as a new version; one that is being deleted goes with its last finalizer.
func (s *store) put(o *object) ([]byte, error) {
	s.version++
	o.meta()["resourceVersion"] = strconv.Itoa(s.version)
	finalizers, _ := o.meta()["finalizers"].([]any)
	if o.meta()["deletionTimestamp"] != nil && len(finalizers) == 0 {
		delete(s.objects, o.key())
	} else {
		s.objects[o.key()] = o
	}
	s.changed[o.key()] = true
	select {
	case s.some <- struct{}{}:
	default:
	}
	return o.text(), nil
}

func fail(code sdk.StoreCode, field, reason string) error {
	return &sdk.StoreError{Code: code, Field: field, Reason: reason}
}

func unknown(t string) error { return fail(sdk.StoreUnsupported, "", t+" is not written here") }

// decode reads JSON that is an object.
func decode(text []byte, into *map[string]any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fail(sdk.StoreInvalid, "", "is no JSON object: "+err.Error())
	}
	if *into == nil {
		return fail(sdk.StoreInvalid, "", "is no JSON object")
	}
	return nil
}
