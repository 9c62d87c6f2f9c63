package modules

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/coxswain-mesh/coxswain/internal/artifact"
	"github.com/coxswain-mesh/coxswain/internal/artifact/reference"
	"github.com/coxswain-mesh/coxswain/plugins/internal/keysets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
)

// scheme begins names of images.
const scheme = "oci://"

func referenceOf(url string) (ref reference.Reference, err error) {
	return ref, ref.UnmarshalText([]byte(url))
}

// fetcher gets modules, and keeps them in a directory for each namespace and Secret: what was
// fetched with one is nobody's who doesn't name it.
type fetcher struct {
	config Config
	// warn says what is wrong although there is a module.
	warn func(key, text string, err error)

	mu     sync.Mutex
	stores map[string]*artifact.Store
	// found are modules by the store that has them, and the resource that names them.
	found map[string]map[string]*artifact.Found
}

func newFetcher(c Config, warn func(key, text string, err error)) *fetcher {
	return &fetcher{config: c, warn: warn, stores: map[string]*artifact.Store{}, found: map[string]map[string]*artifact.Found{}}
}

func (f *fetcher) source(w want) (artifact.Source, error) {
	c := f.config
	src := artifact.Source{
		CA: c.Pull.CA, Timeout: c.Pull.Timeout, Bytes: uint64(c.Pull.Bytes), Docker: []byte(w.Login), Filter: true,
		Admits: keysets.Bounds{Blocked: c.Blocked, LinkLocal: c.LinkLocal}.Admits,
	}
	if !strings.HasPrefix(w.URL, scheme) {
		return src, nil
	}
	var err error
	src.Reference, err = referenceOf(w.URL)
	src.PlainHTTP = slices.Contains(c.Pull.PlainHTTP, src.Reference.Registry())
	return src, err
}

// place is the name of the directory of a namespace's modules, or of those of a Secret of it.
func place(w want) string {
	sum := sha256.Sum256([]byte(w.Namespace + "\x00" + w.Secret))
	return hex.EncodeToString(sum[:16])
}

func (f *fetcher) store(w want) *artifact.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := place(w)
	if f.stores[name] == nil {
		f.stores[name] = &artifact.Store{Dir: filepath.Join(f.config.Directory, name), Most: f.config.MaxBytes}
	}
	return f.stores[name]
}

// fetch gets a module for the resource of a key, and returns its row's payload.
func (f *fetcher) fetch(ctx context.Context, key string, w want) (string, error) {
	found, err := f.get(ctx, key, w)
	if err != nil {
		return "", err
	}
	if !is(found, w) {
		return "", fmt.Errorf("it is not the one that sha256 names, %s: its own is %s", w.SHA256, strings.TrimPrefix(found.Digest, "sha256:"))
	}
	f.hold(key, w, found)
	return string(modules.Module{SHA256: found.Sum, Spec: []byte(w.Spec)}.Encode()), nil
}

// is reports whether a module is the one that a resource's sha256 names: that of the file or, of an
// image, that of its manifest. Source: Istio, WasmPlugin.sha256.
func is(found *artifact.Found, w want) bool {
	return w.SHA256 == "" || "sha256:"+w.SHA256 == found.Digest || "sha256:"+w.SHA256 == found.Manifest
}

// get gets a module: what the URL led to before, if that is enough and it is there; otherwise what
// it leads to now. Where that can't be had, it is what it led to before if the resource has none
// yet, as after a start.
func (f *fetcher) get(ctx context.Context, key string, w want) (*artifact.Found, error) {
	src, err := f.source(w)
	if err != nil {
		return nil, err
	}
	store := f.store(w)
	meant := store.Meant(w.Namespace, w.URL)
	had := func() *artifact.Found {
		if meant == "" {
			return nil
		}
		found, err := f.kept(ctx, store, src, meant)
		if err != nil || !is(found, w) {
			return nil
		}
		return found
	}
	if !w.Always {
		if found := had(); found != nil {
			return found, nil
		}
	}
	found, err := f.anew(ctx, store, src, w)
	if err != nil {
		if before := had(); before != nil && w.Always && !f.has(key) {
			f.warn(key, "a module cannot be asked for; the one that was fetched before counts", err)
			return before, nil
		}
		return nil, err
	}
	if found.Digest != meant && is(found, w) {
		err = store.Means(w.Namespace, w.URL, found.Digest)
	}
	return found, err
}

// kept returns what a digest is, from the store alone.
func (f *fetcher) kept(ctx context.Context, store *artifact.Store, src artifact.Source, digest string) (*artifact.Found, error) {
	if src.Reference == "" {
		if found := store.Kept(digest); found != nil {
			return found, nil
		}
		return nil, os.ErrNotExist
	}
	return store.Get(ctx, src, digest)
}

// has reports whether a resource has a module.
func (f *fetcher) has(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.found {
		if all[key] != nil {
			return true
		}
	}
	return false
}

func (f *fetcher) anew(ctx context.Context, store *artifact.Store, src artifact.Source, w want) (*artifact.Found, error) {
	if w.Secret != "" && w.Login == "" {
		return nil, fmt.Errorf("imagePullSecret %s: %s", w.Secret, w.Absent)
	}
	if src.Reference == "" {
		return store.Download(ctx, src, w.URL)
	}
	return store.Get(ctx, src, "")
}

// hold notes which module a resource has: it stays in its store, and others make room.
func (f *fetcher) hold(key string, w want, found *artifact.Found) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := place(w)
	for _, all := range f.found {
		delete(all, key)
	}
	if f.found[name] == nil {
		f.found[name] = map[string]*artifact.Found{}
	}
	f.found[name][key] = found
	var all []*artifact.Found
	for _, one := range f.found[name] {
		all = append(all, one)
	}
	if s := f.stores[name]; s != nil { // somebody is still in this place
		s.Hold(all...)
	}
}

// keep forgets the modules of resources that there are no more, and of places that nobody is in.
func (f *fetcher) keep(now map[string]want) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	places := map[string]bool{}
	for _, w := range now {
		places[place(w)] = true
	}
	for _, all := range f.found {
		for key := range all {
			if _, ok := now[key]; !ok {
				delete(all, key)
			}
		}
	}
	entries, err := os.ReadDir(f.config.Directory)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name := e.Name()
		if len(name) != 32 || places[name] || len(f.found[name]) > 0 {
			continue
		}
		delete(f.stores, name)
		delete(f.found, name)
		err = errors.Join(err, os.RemoveAll(filepath.Join(f.config.Directory, name)))
	}
	return err
}

// bytes returns a module that a resource has.
func (f *fetcher) bytes(key, sum string) ([]byte, error) {
	f.mu.Lock()
	path := ""
	for _, all := range f.found {
		if all[key] != nil && all[key].Sum == sum {
			path = all[key].Path
		}
	}
	f.mu.Unlock()
	text, err := os.ReadFile(path)
	if err == nil && modules.Sum(text) != sum {
		err = errors.New("it is not what it was when it was fetched")
	}
	return text, err
}
