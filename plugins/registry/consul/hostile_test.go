package consul

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// lie answers in a twin's place.
type lie func(out http.ResponseWriter, r *http.Request) bool

// says answers so of what is asked for by a path.
func says(path, index string, body func(io.Writer, *http.Request)) lie {
	return func(out http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path {
			return false
		}
		for name, value := range map[string]string{"X-Consul-Index": index, "X-Consul-Knownleader": "true", "X-Consul-Lastcontact": "0"} {
			out.Header().Set(name, value)
		}
		body(out, r)
		return true
	}
}

// text writes a text.
func text(all ...string) func(io.Writer, *http.Request) {
	return func(out io.Writer, _ *http.Request) { _, _ = io.WriteString(out, strings.Join(all, "")) }
}

// jsonOf writes instances.
func jsonOf(all ...any) func(io.Writer, *http.Request) {
	body, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return text(string(body))
}

// forever writes a text until nobody listens; written is how many bytes it came to.
func forever(begin, part string, written *atomic.Int64) func(io.Writer, *http.Request) {
	return func(out io.Writer, r *http.Request) {
		n, err := io.WriteString(out, begin)
		for ; err == nil && r.Context().Err() == nil; n, err = io.WriteString(out, part) {
			written.Add(int64(n))
		}
	}
}

// slowly writes a begin, and then a byte now and then, or nothing.
func slowly(begin string, every time.Duration) func(io.Writer, *http.Request) {
	return func(out io.Writer, r *http.Request) {
		_, _ = io.WriteString(out, begin)
		out.(http.Flusher).Flush()
		for r.Context().Err() == nil {
			select {
			case <-r.Context().Done():
			case <-time.After(every):
				_, _ = io.WriteString(out, " ")
				out.(http.Flusher).Flush()
			}
		}
	}
}

const ofWeb, ofAll = "/v1/health/service/web", "/v1/catalog/services"

// mostAnswer is what the tests' configs take of an answer.
const mostAnswer = 2 << 20

// lies are of the service web, or of the list of services. rest: the answer's other instances
// count, so that there is 10.0.0.2, too. says is the fault that is shown.
func lies(written *atomic.Int64) map[string]struct {
	path string
	lie  lie
	rest bool
	says string
} {
	zip := func(out io.Writer, _ *http.Request) {
		out.(http.ResponseWriter).Header().Set("Content-Encoding", "gzip")
		_, _ = out.Write(bomb())
	}
	two := at("web", 2)
	large := at("web", 3, func(e *entry) {
		e.Service.Meta = map[string]string{"big": strings.Repeat("x", 600_000), "huge": strings.Repeat("y", 600_000)}
	})
	odd := at("web", 3, status(critical), func(e *entry) {
		e.Service.ID, e.Node.Node, e.Service.Tags = "a\x00\x1b[31m\n", "../../n", []string{"\x1b|\x00", "ok|\u202e"}
		e.Service.Meta = map[string]string{"\x1b": "\x00", "k": "\x00\x1b[2J"}
	})
	names := map[string][]string{"web": {}, "other": {}, "": {}, "../../../v1/agent/self": {}, "a/../b": {}, "a\x00b": {}, "x?token=y": {}}
	many := map[string][]string{}
	for n := range 20_000 {
		many[fmt.Sprintf("zz%05d", n)] = nil
	}
	encode := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	return map[string]struct {
		path string
		lie  lie
		rest bool
		says string
	}{
		"without end":       {path: ofWeb, lie: says(ofWeb, "99", forever("[", strings.Repeat(" ", 4096), written)), says: "answer"},
		"names without end": {path: ofAll, lie: says(ofAll, "99", forever("{", strings.Repeat(" ", 4096), written))},
		"a bomb":            {path: ofWeb, lie: says(ofWeb, "99", zip), says: "answer"},
		"deep":              {path: ofWeb, lie: says(ofWeb, "99", text(`[{"Node":`, strings.Repeat(`{"a":`, 100_000))), says: "answer"},
		"deep, and whole": {
			path: ofWeb,
			lie:  says(ofWeb, "99", text(`[{"Node":`, strings.Repeat(`[`, 9_000), strings.Repeat(`]`, 9_000), `}]`)),
			says: "record",
		},
		"nulls": {path: ofWeb, lie: says(ofWeb, "99", jsonOf(nil, nil, two)), rest: true, says: "record"},
		"of other types": {
			path: ofWeb,
			lie:  says(ofWeb, "99", text(`[7, "a", [], {"Node": {"Node": 7}, "Service": []}, `+encode(two)+`]`)),
			rest: true, says: "record",
		},
		"an ID of its own": {
			path: ofWeb,
			lie:  says(ofWeb, "99", text(`[{"Node": {"Node": "n1"}, "Service": {"ID": "web-1", "Port": "x"}}, `+encode(two)+`]`)),
			rest: true, says: "record",
		},
		"one too large":   {path: ofWeb, lie: says(ofWeb, "99", jsonOf(at("web", 1), large, two)), rest: true, says: ""},
		"by the thousand": {path: ofWeb, lie: says(ofWeb, "99", text("[", strings.Repeat("{},", 300_000), "{}]")), says: "record"},
		"more than may be": {path: ofWeb, lie: says(ofWeb, "99", func(out io.Writer, _ *http.Request) {
			_, _ = io.WriteString(out, encode(append([]entry{at("web", 1), two}, some(5000)...)))
		}), rest: true, says: "limit"},
		"again and again": {path: ofWeb, lie: says(ofWeb, "99", func(out io.Writer, _ *http.Request) {
			_, _ = io.WriteString(out, "["+encode(two)+strings.Repeat(","+encode(at("web", 1)), 3000)+"]")
		}), rest: true, says: "limit"},
		"odd names":          {path: ofWeb, lie: says(ofWeb, "99", jsonOf(at("web", 1), two, odd)), rest: true, says: "tag"},
		"odd services":       {path: ofAll, lie: says(ofAll, "99", text(encode(names))), says: "service"},
		"too many services":  {path: ofAll, lie: says(ofAll, "99", text(`{"web":[],"other":[],`, encode(many)[1:])), says: "limit"},
		"tags of other type": {path: ofAll, lie: says(ofAll, "99", text(`{"web": 7, "other": {"a": []}}`))},
		"an index too far":   {path: ofWeb, lie: says(ofWeb, "18446744073709551615", jsonOf(at("web", 1), two)), rest: true},
		"an index that jumps": {path: ofWeb, lie: func(out http.ResponseWriter, r *http.Request) bool {
			return says(ofWeb, fmt.Sprint(written.Add(7919)*104729%1000+1), jsonOf(at("web", 1), two))(out, r)
		}, rest: true},
		"no index":          {path: ofWeb, lie: says(ofWeb, "-1", jsonOf()), says: "answer"},
		"it stops half way": {path: ofWeb, lie: says(ofWeb, "99", slowly(`[{"Node":{"Node":"n1"`, time.Hour))},
		"it stops, nearly":  {path: ofWeb, lie: says(ofWeb, "99", slowly(`[{"Node":{"Node":"n1"`, 50*time.Millisecond))},
		"a long header":     {path: ofWeb, lie: says(ofWeb, strings.Repeat("9", 1<<20), jsonOf()), says: "answer"},
	}
}

// bomb is a list that is much larger when it is unpacked.
var bomb = sync.OnceValue(func() []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(append([]byte("["), bytes.Repeat([]byte(" "), 16*mostAnswer)...))
	_ = z.Close()
	return out.Bytes()
})

// some are others than there are before.
func some(n int) (all []entry) {
	for i := range n {
		all = append(all, at("web", 1000+i, status(critical)))
	}
	return all
}

// TestLiar: a Consul that answers what no Consul does ends nothing, takes nothing away, and keeps
// no other service back; each question has an end, and when it is well again what there is arrives.
func TestLiar(t *testing.T) {
	for name := range lies(new(atomic.Int64)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var written atomic.Int64
			c := lies(&written)[name]
			w := newTwin(t)
			w.put("web", at("web", 1))
			w.put("other", at("other", 9))
			h := begin(t, w, map[string]any{"maxBytes": mostAnswer, "maxServices": 20, "maxInstances": 50, "wait": "1s", "interval": "20ms"})
			has(t, h, "web", "10.0.0.1")
			has(t, h, "other", "10.0.0.9")
			w.alter(func() { w.apart = c.lie })
			times := 6
			if strings.HasPrefix(name, "it stops") {
				times = 2 // each takes as long as an answer may
			}
			enough := w.asks(times, func(r *http.Request) bool { return r.URL.Path == c.path })
			if c.rest {
				has(t, h, "web", "10.0.0.1", "10.0.0.2")
			} else {
				keeps(t, h, enough, "web", "10.0.0.1")
			}
			if c.says != "" {
				h.WaitRows("faults", func(rows map[string]*sdk.Row) bool {
					for key := range rows {
						if strings.HasSuffix(key, ":"+c.says) {
							return true
						}
					}
					return false
				})
			}
			w.put("other", at("other", 8)) // others go on
			has(t, h, "other", "10.0.0.8")
			if n := written.Load(); strings.Contains(name, "without end") && n > 100*mostAnswer {
				t.Errorf("%d bytes were taken", n)
			}
			for _, key := range shownOf(h.Rows("faults")) {
				if strings.ContainsAny(key, "\x00\x1b") {
					t.Errorf("%q is shown", key)
				}
			}
			w.alter(func() { w.apart = nil })
			w.put("web", at("web", 1), at("web", 3))
			has(t, h, "web", "10.0.0.1", "10.0.0.3")
			for _, path := range w.paths() {
				if strings.Contains(path, "..") || strings.Contains(path, "\x00") || path == "/v1/health/service/" {
					t.Errorf("%q was asked for", path)
				}
			}
			if n := len(w.distinct()); n > 30 {
				t.Errorf("%d services were asked for", n)
			}
		})
	}
}

// shownOf are the texts of faults.
func shownOf(rows map[string]*sdk.Row) (all []string) {
	for _, r := range rows {
		var f struct{ Message string }
		_ = json.Unmarshal(r.Payload, &f)
		all = append(all, f.Message)
	}
	return all
}

// paths are those that were asked for.
func (w *twin) paths() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.asked {
		all = append(all, r.URL.Path)
	}
	return all
}

func (w *twin) distinct() map[string]bool {
	all := map[string]bool{}
	for _, p := range w.paths() {
		all[p] = true
	}
	return all
}

// TestLiarLeadsElsewhere: nobody is asked but Consul, and the token is told to nobody, nor by an
// answer that repeats it.
func TestLiarLeadsElsewhere(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was asked for elsewhere, with the token %q", r.URL, r.Header.Get("X-Consul-Token"))
	}))
	defer elsewhere.Close()
	const token = "7d9f-se/cret+token"
	for name, l := range map[string]lie{
		"elsewhere": func(out http.ResponseWriter, r *http.Request) bool {
			http.Redirect(out, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		},
		"a machine's secrets": func(out http.ResponseWriter, r *http.Request) bool {
			http.Redirect(out, r, "http://169.254.169.254/latest/"+token, http.StatusMovedPermanently)
			return true
		},
		"what it was told": func(out http.ResponseWriter, r *http.Request) bool {
			http.Error(out,
				"ACL not found: "+r.Header.Get("X-Consul-Token")+" "+base64.StdEncoding.EncodeToString([]byte(token))+strings.Repeat(" ", mostRefusal),
				http.StatusForbidden)
			return true
		},
		"a header": func(out http.ResponseWriter, r *http.Request) bool {
			out.Header().Set("X-Consul-Index", r.Header.Get("X-Consul-Token"))
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTwin(t)
			w.put("web", at("web", 1))
			h := begin(t, w, map[string]any{"token": token})
			has(t, h, "web", "10.0.0.1")
			w.alter(func() { w.apart = l })
			keeps(t, h, w.asks(6, about("/v1/")), "web", "10.0.0.1")
			h.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
				all := fmt.Sprint(text, fields)
				if strings.Contains(all, token) || strings.Contains(all, base64.StdEncoding.EncodeToString([]byte(token))) {
					t.Errorf("the token is told: %s", all)
				}
				return fields["error"] != ""
			})
			w.alter(func() { w.apart = nil })
			w.put("web", at("web", 2))
			has(t, h, "web", "10.0.0.2")
		})
	}
}

// TestListed: what is read of an answer is bounded by what may be kept, whatever its size.
func TestListed(t *testing.T) {
	l := listed{most: 100}
	if err := json.Unmarshal([]byte("["+strings.Repeat(`null,{},{"Node":{"Node":"a"},"Service":{"ID":"b"}},`, 1000)+"7]"), &l); err != nil {
		t.Fatal(err)
	}
	if n := len(l.entries) + len(l.broken); n != 100 || l.left != 2901 || !l.there {
		t.Errorf("%d are kept, %d left", n, l.left)
	}
	for _, text := range []string{`{}`, `7`, `[`, `[{]`, `[{"Node":`} {
		if err := json.Unmarshal([]byte(text), &listed{most: 9}); err == nil {
			t.Errorf("%s is a list", text)
		}
	}
}

// TestAnswersAtOnce: many large answers at once have a bound together.
func TestAnswersAtOnce(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(make([]byte, 900)) }))
	defer s.Close()
	b := &bounded{next: http.DefaultTransport, most: 1000}
	var open []*http.Response
	read := 0
	for range 5 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := b.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, a)
		if _, err := io.ReadAll(a.Body); err == nil {
			read++
		} else if !strings.Contains(err.Error(), "maxBytes, times 2") {
			t.Error(err)
		}
	}
	if read != 2 {
		t.Errorf("%d answers of 900 bytes were read where 2000 may be", read)
	}
	for _, a := range open {
		_ = a.Body.Close()
	}
	if n := b.held.Load(); n != 0 {
		t.Errorf("%d bytes are held at the end", n)
	}
}
