package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/prometheus/client_golang/prometheus"
)

// sick is a twin in whose texts somebody has planted markup and a secret.
type sick struct{ twin }

// all is the glance of who may see everything.
func all(s Source) []byte { return (&Config{Source: s}).glance("") }

const planted = "<img src=x onerror=alert(1)>\r\ndata: \u2028</script>"

func (sick) Plugins() []Plugin {
	return []Plugin{
		{Name: "well", Kind: "config", State: "serving"}, {Name: "off", Kind: "config", State: "disabled"}, {Name: "idle", Kind: "generator", State: "asleep"},
		{Name: planted, Kind: "registry", State: "failed", LastError: planted + " password=hunter2"},
		{Name: "away", Kind: "registry", State: "serving", Stale: true, Away: &Away{Since: time.Unix(1, 0), Why: "refused"}},
	}
}

func (sick) Streamed() []xds.StreamStatus {
	return []xds.StreamStatus{
		{Node: "synced", Types: []xds.TypeStatus{{Sent: "1", Acked: "1"}}},
		{Node: "pending", Types: []xds.TypeStatus{{Sent: "2", Acked: "1"}}},
		{Node: "refusing", Types: []xds.TypeStatus{{Sent: "2", Acked: "1", Refused: planted}, {Sent: "3"}}},
	}
}

func (sick) Pushes(uint64) ([]Push, error) {
	return []Push{{Revision: 1, Kind: "full", Proxies: 3}, {Revision: 2, Kind: "full", Proxies: 3}, {Revision: 3, Kind: "full"}}, nil
}

// TestGlance: what is wrong is counted and named, on one line that has no markup in it.
func TestGlance(t *testing.T) {
	text := all(sick{})
	if strings.ContainsAny(string(text), "<>\n\r") || strings.Contains(string(text), "hunter2") {
		t.Errorf("it has markup, lines or a secret in it: %s", text)
	}
	var g Glance
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if g.Planning != 1 || g.Planned != 5 {
		t.Errorf("it says %s", text)
	}
	if g.Proxies != 3 || g.Synced != 1 || g.Pending != 1 || g.Refusing != 1 || g.Refusals != 1 || g.Pins != 1 || g.Push == nil || g.Push.Revision != 2 {
		t.Errorf("it says %s", text)
	}
	ill := map[string]string{}
	for _, p := range g.Plugins {
		ill[p.Name] = strings.Join(p.Ill, "; ")
	}
	if ill["well"]+ill["off"]+ill["idle"] != "" || !strings.HasPrefix(ill[planted], "failed: ") || ill["away"] != "its source is away: refused" {
		t.Errorf("plugins: %q", ill)
	}
}

// mistaken is a twin with mistakes in its configuration.
type mistaken struct{ sick }

func (m mistaken) Rows(table string) []*pb.Row {
	rows := m.sick.Rows(table) // an error in a Gateway of which a version is served, and a warning
	if table != "faults" {
		return rows
	}
	for _, payload := range []string{
		`{"file":"gw.yaml","line":4,"column":1,"kind":"Gateway","namespace":"a","name":"gw","message":"the same object again"}`,
		`{"file":"vs.yaml","line":1,"column":1,"kind":"VirtualService","namespace":"a","name":"derived","message":"weight: -5"}`,
		`{"file":"bad.yaml","line":6,"column":66,"message":"no YAML: ` + strings.Repeat("ä", 400) + `"}`,
		`{"file":"worse.yaml","line":1,"column":1,"message":"neither"}`,
	} {
		rows = append(rows, &pb.Row{Key: payload, Shard: "files", Payload: []byte(payload)})
	}
	return rows
}

func (mistaken) Derivations() map[RowName]RowName {
	return map[RowName]RowName{{Table: "networking.istio.io/VirtualService", Key: "a/derived"}: {Table: "gateway.networking.k8s.io/HTTPRoute", Key: "a/route"}}
}

// TestGlanceCountsMistakes: objects that are refused are counted once each, as on /debug/configs,
// and it is said of some what is wrong, at bounded length.
func TestGlanceCountsMistakes(t *testing.T) {
	var g Glance
	if err := json.Unmarshal(all(mistaken{}), &g); err != nil {
		t.Fatal(err)
	}
	if g.Faulty != 4 || g.Unserved != 3 {
		t.Errorf("%d are refused, nothing of %d is served; want 4 and 3", g.Faulty, g.Unserved)
	}
	if len(g.Wrong) != wrongMost || !strings.Contains(strings.Join(g.Wrong, "\n"), "gw.yaml:3:1: a/gw: unknown field") {
		t.Errorf("it says %q", g.Wrong)
	}
	for _, text := range g.Wrong {
		if len(text) > wrongBytes+len("…") || !utf8.ValidString(text) {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
	refused := 0
	for _, o := range objectsOf(t, mistaken{}) {
		if o.State == stateRefused {
			refused++
		}
	}
	if refused != g.Faulty {
		t.Errorf("/debug/configs has %d that are refused, the glance %d", refused, g.Faulty)
	}
}

// TestUIIsForThoseWhoSeePages: the page and its events, on the monitoring port alone.
func TestUIIsForThoseWhoSeePages(t *testing.T) {
	a := start(t, sick{})
	ended, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		name string
		h    http.Handler
		host string
		code int
	}{
		{"here", a.Monitoring(), "localhost", 200},
		{"by a name that leads here", a.Monitoring(), "evil.example", 403},
		{"the other port", a.HTTP(), "localhost", 404},
	} {
		for _, path := range []string{"/ui/", "/ui/page.js", "/ui/events"} {
			r := here(path)
			if r.Host = c.host; path == "/ui/events" {
				r = r.WithContext(context.WithValue(ended, http.LocalAddrContextKey, r.Context().Value(http.LocalAddrContextKey)))
			}
			w := httptest.NewRecorder()
			if c.h.ServeHTTP(w, r); w.Code != c.code {
				t.Errorf("%s, %s: %d", c.name, path, w.Code)
			}
		}
	}
	// From elsewhere: callers of namespaces of their own see the page, and their own proxies by it.
	b, err := New(Config{Source: fleet{}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Naming: naming,
		Caller: func(_ context.Context, s Shown) ([]string, error) {
			return []string{s.Headers.Get("Authorization")}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, text string }{{"/ui/", "<!doctype"}, {"/ui/session", `"actions":false`}, {"/ui/events", `"own":["shop"]`}} {
		ctx, stop := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://10.0.0.5"+c.path, http.NoBody)
		r.RemoteAddr = "10.0.0.9:4000"
		r.Header.Set("Authorization", "shop/web")
		w := &said{httptest.NewRecorder(), stop}
		if b.Monitoring().ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(strings.ToLower(w.Body.String()), c.text) {
			t.Errorf("a caller of shop, %s: %d %s", c.path, w.Code, w.Body)
		}
		stop()
	}
	elsewhere := httptest.NewRequest(http.MethodGet, "http://10.0.0.5/ui/", http.NoBody)
	elsewhere.RemoteAddr = "10.0.0.9:4000"
	w := httptest.NewRecorder()
	if a.Monitoring().ServeHTTP(w, elsewhere); w.Code != http.StatusForbidden {
		t.Errorf("from elsewhere: %d", w.Code)
	}
	post := here("/ui/events")
	post.Method = http.MethodPost
	w = httptest.NewRecorder()
	if a.Monitoring().ServeHTTP(w, post); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// said is an answer whose request ends once an event has been said.
type said struct {
	*httptest.ResponseRecorder
	stop func()
}

func (s *said) Write(text []byte) (int, error) {
	if strings.Contains(string(text), "event: ") {
		s.stop()
	}
	return s.ResponseRecorder.Write(text)
}

// TestServerStopsDespiteEvents: who follows the events does not delay the end.
func TestServerStopsDespiteEvents(t *testing.T) {
	at := make(chan string, 1)
	a, err := New(Config{Source: sick{}, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), MonitoringAddr: "127.0.0.1:0",
		Listening: func(_ string, where net.Addr) { at <- where.String() }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	if err := a.Open(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- a.Run(ctx) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+<-at+"/ui/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if b := make([]byte, 1); resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	} else if _, err := resp.Body.Read(b); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
