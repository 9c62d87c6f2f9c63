package consul

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// twin answers as Consul 1.15 does to what the plugin asks, as far as recorded answers in testdata
// show: indexes, blocking, filtered results.
type twin struct {
	*httptest.Server

	mu       sync.Mutex
	index    uint64
	services map[string][]entry
	// indexes are those of single services; it is the index for those that it lacks.
	indexes map[string]uint64
	changed chan struct{}
	// instead answers in its place, if it returns true. It is asked after blocking.
	instead func(out http.ResponseWriter, r *http.Request) bool
	// apart is the same, and may take its time: mu isn't held.
	apart func(out http.ResponseWriter, r *http.Request) bool
	// behind: a server that was just started knows nothing yet, has no leader, and refuses
	// consistent questions.
	behind bool
	// filtered are services that the token may not see.
	filtered map[string]bool
	asked    []*http.Request
}

func newTwin(t testing.TB) *twin {
	t.Helper()
	w := &twin{index: 10, services: map[string][]entry{}, indexes: map[string]uint64{}, changed: make(chan struct{}), filtered: map[string]bool{}}
	w.Server = httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(func() { w.CloseClientConnections(); w.Close() })
	return w
}

// change changes what there is.
func (w *twin) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	w.index++
	close(w.changed)
	w.changed = make(chan struct{})
}

// put makes these all instances of a service.
func (w *twin) put(service string, all ...entry) {
	w.change(func() { w.services[service], w.indexes[service] = all, w.index+1 })
}

func (w *twin) remove(service string) {
	w.change(func() { delete(w.services, service); delete(w.indexes, service) })
}

// indexOf is that of a service's instances, or of the list of services; mu is held.
func (w *twin) indexOf(path string) uint64 {
	if i := w.indexes[strings.TrimPrefix(path, "/v1/health/service/")]; i != 0 {
		return i
	}
	return w.index
}

// alter has it answer otherwise from now on.
func (w *twin) alter(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *twin) answer(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, r)
	q := r.URL.Query()
	w.block(r, q)
	if w.instead != nil && w.instead(out, r) {
		return
	}
	if apart := w.apart; apart != nil {
		w.mu.Unlock()
		done := apart(out, r)
		w.mu.Lock()
		if done {
			return
		}
	}
	if w.behind && !q.Has("stale") {
		http.Error(out, "No cluster leader", http.StatusInternalServerError)
		return
	}
	services, index, hidden := w.services, w.indexOf(r.URL.Path), false
	if w.behind {
		services, index = nil, 1
	}
	var body any
	switch name, isService := strings.CutPrefix(r.URL.Path, "/v1/health/service/"); {
	case isService:
		all := []entry{}
		if hidden = w.filtered[name] && len(services[name]) > 0; !hidden {
			all = append(all, services[name]...)
		}
		body = all
	case r.URL.Path == "/v1/catalog/services":
		names := map[string][]string{}
		for name, all := range services {
			if w.filtered[name] {
				hidden = true
				continue
			}
			names[name] = []string{}
			for _, e := range all {
				names[name] = append(names[name], e.Service.Tags...)
			}
		}
		body = names
	default:
		http.NotFound(out, r)
		return
	}
	h := out.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Consul-Index", strconv.FormatUint(index, 10))
	h.Set("X-Consul-Knownleader", strconv.FormatBool(!w.behind))
	h.Set("X-Consul-Lastcontact", "0")
	if hidden {
		h.Set("X-Consul-Results-Filtered-By-Acls", "true")
	}
	_ = json.NewEncoder(out).Encode(body)
}

// block waits until there is news, something else is to be answered, or the question's time is
// over; mu is held.
func (w *twin) block(r *http.Request, q url.Values) {
	index, _ := strconv.ParseUint(q.Get("index"), 10, 64)
	wait, _ := time.ParseDuration(q.Get("wait"))
	if index == 0 {
		return
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	for first := true; w.indexOf(r.URL.Path) <= index; first = false {
		if w.instead != nil || w.apart != nil || w.behind || !first && len(w.filtered) > 0 {
			return
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
			w.mu.Lock()
		case <-over.C:
			w.mu.Lock()
			return
		case <-r.Context().Done():
			w.mu.Lock()
			return
		}
	}
}

// questions counts those that fulfil something.
func (w *twin) questions(are func(*http.Request) bool) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.asked {
		if are(r) {
			n++
		}
	}
	return n
}

// at is an instance.
func at(service string, n int, more ...func(*entry)) entry {
	e := entry{
		Node:    node{Node: fmt.Sprintf("n%d", n%7), Address: "10.9.9.9", Datacenter: "dc1"},
		Service: instance{ID: fmt.Sprintf("%s-%d", service, n), Service: service, Address: fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255), Port: 8080},
		Checks:  []check{{"c", passing}},
	}
	for _, m := range more {
		m(&e)
	}
	return e
}

func status(s string) func(*entry) { return func(e *entry) { e.Checks[0].Status = s } }
