// Package liar is a registry of artifacts for tests, which gives what was put into it, or whatever
// else a test wants it to: late, wrong, too much, or nothing.
package liar

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Registry is one that answers on this machine.
type Registry struct {
	*httptest.Server
	mu    sync.Mutex
	blobs map[digest.Digest][]byte
	// under are manifests by tag, types their media types.
	under map[string]digest.Digest
	types map[digest.Digest]string
	asked []string
	// twist reports whether it answered.
	twist func(w http.ResponseWriter, r *http.Request) bool
}

// New starts a registry, which ends with the test.
func New(t testing.TB) *Registry {
	t.Helper()
	l := &Registry{blobs: map[digest.Digest][]byte{}, under: map[string]digest.Digest{}, types: map[digest.Digest]string{}}
	l.Server = httptest.NewServer(l)
	t.Cleanup(l.Close)
	return l
}

// ServeHTTP implements http.Handler.
func (l *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.asked = append(l.asked, r.URL.Path)
	twist := l.twist
	l.mu.Unlock()
	if twist != nil && twist(w, r) {
		return
	}
	text, mediaType := l.find(r.URL.Path)
	if text == nil {
		http.Error(w, `{"errors":[{"code":"NOT_FOUND"}]}`, http.StatusNotFound)
		return
	}
	if mediaType != "" {
		w.Header().Set("Content-Type", mediaType)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}

// find returns what is at a path, and its media type where that is a manifest's.
func (l *Registry) find(path string) (text []byte, mediaType string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, last, manifests := strings.Cut(path, "/manifests/")
	if !manifests {
		if !strings.Contains(path, "/blobs/") {
			return nil, ""
		}
		return l.blobs[digest.Digest(path[strings.LastIndexByte(path, '/')+1:])], ""
	}
	d, tagged := l.under[last]
	if !tagged {
		d = digest.Digest(last)
	}
	if l.types[d] == "" {
		return nil, ""
	}
	return l.blobs[d], l.types[d]
}

// Twist lets a func answer, if it reports that it did; nil: none.
func (l *Registry) Twist(with func(w http.ResponseWriter, r *http.Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.twist = with
}

// Asked are the paths that were asked for.
func (l *Registry) Asked() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}

// Put keeps a blob.
func (l *Registry) Put(mediaType string, text []byte) ocispec.Descriptor {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := digest.FromBytes(text)
	l.blobs[d] = text
	return ocispec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(text))}
}

// Manifest keeps a manifest or an index, under a tag where one is given.
func (l *Registry) Manifest(t testing.TB, tag, mediaType string, value any) ocispec.Descriptor {
	t.Helper()
	d := l.Put(mediaType, inJSON(t, value))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.types[d.Digest] = mediaType
	if tag != "" {
		l.under[tag] = d.Digest
	}
	return d
}

// Artifact keeps a manifest of layers, with a configuration.
func (l *Registry) Artifact(t testing.TB, tag, configType string, config any, layers ...ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	return l.Manifest(t, tag, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		MediaType: ocispec.MediaTypeImageManifest, Config: l.Put(configType, inJSON(t, config)), Layers: layers,
	})
}

func inJSON(t testing.TB, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Host is its address.
func (l *Registry) Host() string { return strings.TrimPrefix(l.URL, "http://") }
