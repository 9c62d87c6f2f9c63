package eureka

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// record is an instance as it is written.
type record map[string]any

// at is an instance of an application, at 10.0.0.N.
func at(app string, n int, with ...func(record)) record {
	address := fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255)
	r := record{
		"instanceId": fmt.Sprintf("%s-%d", strings.ToLower(app), n), "app": strings.ToUpper(app),
		"hostName": fmt.Sprintf("h%d", n), "ipAddr": address, "vipAddress": strings.ToLower(app),
		"status": up, "port": map[string]any{"$": 8080, "@enabled": "true"}, "securePort": map[string]any{"$": 443, "@enabled": "false"},
		"metadata": map[string]any{"@class": "java.util.Collections$EmptyMap"},
	}
	for _, w := range with {
		w(r)
	}
	return r
}

func with(key string, value any) func(record) { return func(r record) { r[key] = value } }

func (r record) key() string { return fmt.Sprint(r["app"], "/", r["instanceId"]) }

// twin answers as Eureka does to what the plugin asks, as far as recorded answers in testdata show:
// everything, what changed, hashes, leases.
type twin struct {
	*httptest.Server

	mu sync.Mutex
	// clock counts registrations and is the time of leases.
	clock int
	have  map[string]record
	// changed are instances with actions, in order; forget empties it.
	changed []record
	// instead answers in its place, if it returns true.
	instead func(out http.ResponseWriter, r *http.Request) bool
	// apart answers in its place, and may take its time: mu isn't held.
	apart func(out http.ResponseWriter, r *http.Request)
	asked []string
}

func newTwin(t testing.TB) *twin {
	t.Helper()
	w := &twin{have: map[string]record{}}
	w.Server = httptest.NewServer(http.HandlerFunc(w.answer))
	t.Cleanup(func() { w.CloseClientConnections(); w.Close() })
	return w
}

// change changes what there is.
func (w *twin) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// put registers instances, which replaces those of the same ID.
func (w *twin) put(all ...record) {
	w.change(func() {
		for _, r := range all {
			w.register(r, true)
		}
	})
}

// register has mu; anew: the instance says that it changed.
func (w *twin) register(r record, anew bool) {
	w.clock++
	now := maps.Clone(r)
	now["actionType"], now["leaseInfo"] = "ADDED", map[string]any{"registrationTimestamp": w.clock, "durationInSecs": 90}
	if anew {
		now["lastDirtyTimestamp"] = fmt.Sprint(w.clock)
	}
	w.have[r.key()] = now
	w.changed = append(w.changed, now)
}

func (w *twin) remove(all ...record) {
	w.change(func() {
		for _, r := range all {
			gone := maps.Clone(w.have[r.key()])
			gone["actionType"] = deleted
			delete(w.have, r.key())
			w.changed = append(w.changed, gone)
		}
	})
}

// forget has the server not know any more what changed.
func (w *twin) forget() { w.change(func() { w.changed = nil }) }

// restart has the server know nothing but these, which registered again.
func (w *twin) restart(all ...record) {
	w.change(func() {
		w.have, w.changed = map[string]record{}, nil
		for _, r := range all {
			w.register(r, false)
		}
	})
}

func (w *twin) answer(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, r.URL.Path)
	if apart := w.apart; apart != nil {
		w.mu.Unlock()
		apart(out, r)
		w.mu.Lock()
		return
	}
	if w.instead != nil && w.instead(out, r) {
		return
	}
	all := slices.Collect(maps.Values(w.have))
	if strings.HasSuffix(r.URL.Path, "/delta") {
		all = nil
		last := map[string]record{}
		for _, c := range w.changed {
			last[c.key()] = c
		}
		all = slices.Collect(maps.Values(last))
	}
	out.Header().Set("Content-Type", "application/json")
	_, _ = out.Write(encode(w.hash(), all))
}

func (w *twin) hash() string {
	counts := map[string]int{}
	for _, r := range w.have {
		counts[fmt.Sprint(r["status"])]++
	}
	return hash(counts)
}

// encode writes an answer.
func encode(hash string, all []record) []byte {
	apps := map[string][]record{}
	for _, r := range all {
		name := fmt.Sprint(r["app"])
		apps[name] = append(apps[name], r)
	}
	list := []any{}
	for _, name := range slices.Sorted(maps.Keys(apps)) {
		list = append(list, map[string]any{"name": name, "instance": apps[name]})
	}
	text, err := json.Marshal(map[string]any{"applications": map[string]any{"versions__delta": "1", "apps__hashcode": hash, "application": list}})
	if err != nil {
		panic(err)
	}
	return text
}

// count returns how often a path was asked for.
func (w *twin) count(suffix string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range w.asked {
		if strings.HasSuffix(path, suffix) {
			n++
		}
	}
	return n
}
