package eureka

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
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// mostAnswer is what the tests' configs take of an answer.
const mostAnswer = 1 << 20

// lists answers with applications; hash is what it says of them.
func lists(hash, applications string) func(http.ResponseWriter, *http.Request) {
	return func(out http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(out, `{"applications": {"versions__delta": "1", "apps__hashcode": %q, "application": %s}}`, hash, applications)
	}
}

// web is an application's list of instances.
func web(instances ...string) string {
	return `[{"name": "WEB", "instance": [` + strings.Join(instances, ",") + `]}]`
}

func written(r record) string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// slowly answers a begin, and then a byte now and then.
func slowly(begin string, every time.Duration) func(http.ResponseWriter, *http.Request) {
	return func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(out, begin)
		for r.Context().Err() == nil {
			out.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(every):
				_, _ = io.WriteString(out, " ")
			}
		}
	}
}

// TestLiar: a Eureka that answers what no Eureka does ends nothing and takes nothing away; what can
// be read of an answer counts, no more than may be kept is, and when it is well again, what there
// is arrives.
func TestLiar(t *testing.T) {
	var said atomic.Int64
	forever := func(begin, part string) func(http.ResponseWriter, *http.Request) {
		return func(out http.ResponseWriter, r *http.Request) {
			n, err := io.WriteString(out, begin)
			for ; err == nil && r.Context().Err() == nil; n, err = io.WriteString(out, part) {
				said.Add(int64(n))
			}
		}
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(append([]byte(`{"applications": {`), bytes.Repeat([]byte(" "), 16*mostAnswer)...))
	_ = z.Close()
	one, two := written(at("web", 1)), written(at("web", 2))
	several := func(n int, text func(i int) string) (all []string) {
		for i := range n {
			all = append(all, text(i))
		}
		return all
	}
	down := func(i int) string { return written(at("web", 1000+i, with("status", "DOWN"))) }
	for name, tt := range map[string]struct {
		lie func(http.ResponseWriter, *http.Request)
		// rest: 10.0.0.2 is there, too. says is the reason of a fault.
		rest bool
		says string
	}{
		"without end":           {forever(`{"applications": {`, strings.Repeat(" ", 4096)), false, ""},
		"instances without end": {forever(`{"applications": {"application": [{"name": "WEB", "instance": [{}`, strings.Repeat(",{}", 1000)), false, ""},
		"a bomb": {func(out http.ResponseWriter, _ *http.Request) {
			out.Header().Set("Content-Encoding", "gzip")
			_, _ = out.Write(zipped.Bytes())
		}, false, ""},
		"deep": {lists("", strings.Repeat(`[`, 100_000)), false, ""},
		"deep metadata": {
			lists("", web(one, two, `{"instanceId": "x", "metadata": `+strings.Repeat(`{"a":`, 5_000)+"1"+strings.Repeat(`}`, 5_000)+"}")),
			true, "",
		},
		"nulls":           {lists("", web("null", one, two, "null")), true, "record"},
		"of other types":  {lists("", web("7", `"a"`, "[]", one, two, `{"instanceId": 7, "metadata": []}`)), true, "record"},
		"by the thousand": {lists("", web(append(several(1500, down), one, two)...)), false, "limit"},
		"empty ones":      {lists("", web(append([]string{one, two}, several(100_000, func(int) string { return "{}" })...)...)), true, "limit"},
		"again and again": {lists("", web(append([]string{one, two}, several(2000, func(int) string { return one })...)...)), true, "limit"},
		"statuses": {lists("", web(append([]string{one, two},
			several(2000, func(i int) string { return written(at("web", 1000+i, with("status", fmt.Sprint("S", i)))) })...)...)), true, "limit"},
		"odd names": {lists("", web(one, two, written(at("web", 3, with("status", "DOWN"),
			with("instanceId", "../\x00\x1b[2J\n"), with("app", "../../X"), with("vipAddress", "a/../b,\x1b"),
			with("hostName", "\x00"))))), true, ""},
		"more than it has":   {lists("UP_7_", web(one, two)), false, ""},
		"a hash of nonsense": {lists("\x00\x1b", web(one, two)), false, ""},
		"a hash of types": {func(out http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(out, `{"applications": {"apps__hashcode": {"a": []}, "application": %s}}`, web(one))
		}, false, ""},
		"two answers": {func(out http.ResponseWriter, r *http.Request) {
			lists("", web(two))(out, r)
			lists("", web(two))(out, r)
		}, false, ""},
		"it stops half way": {slowly(`{"applications": {"application": [`, time.Hour), false, ""},
		"it stops, nearly":  {slowly(`{"applications": {"application": [`, 20*time.Millisecond), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwin(t)
			w.put(at("web", 1))
			h := begin(t, map[string]any{"maxBytes": mostAnswer, "maxInstances": 50, "timeout": "1s", "deltaWindow": "0s"}, w)
			has(t, h, "web", "10.0.0.1")
			w.change(func() { w.apart = tt.lie })
			if tt.rest {
				has(t, h, "web", "10.0.0.1", "10.0.0.2")
			} else {
				w.keeps(t, h, "", 3, "web", "10.0.0.1")
			}
			if tt.says != "" {
				h.WaitRows("faults", func(rows map[string]*sdk.Row) bool {
					for key := range rows {
						if strings.HasSuffix(key, ":"+tt.says) {
							return true
						}
					}
					return false
				})
			}
			if n := len(h.Rows("endpoints")); n > 60 {
				t.Errorf("%d endpoints are kept", n)
			}
			for _, r := range h.Rows("faults") {
				if strings.ContainsAny(string(r.Payload), "\x00\x1b") || strings.Contains(string(r.Payload), `(\u001b`) {
					t.Errorf("%q is shown", r.Payload)
				}
			}
			w.change(func() { w.apart = nil })
			w.put(at("web", 1), at("web", 3))
			h.WaitRows("endpoints", func(rows map[string]*sdk.Row) bool {
				return rows["default/web.eureka/http-8080/10.0.0.1:8080"] != nil && rows["default/web.eureka/http-8080/10.0.0.3:8080"] != nil
			})
		})
	}
	t.Cleanup(func() {
		if n := said.Load(); n > 200*mostAnswer {
			t.Errorf("%d bytes were taken", n)
		}
	})
}

// TestLiarIsToldNothing: the password goes to the servers alone, and stands in no text.
func TestLiarIsToldNothing(t *testing.T) {
	const password = "p/a+ss word"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was asked for elsewhere, with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for name, lie := range map[string]func(http.ResponseWriter, *http.Request){
		"leads elsewhere": func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"a machine's secrets": func(out http.ResponseWriter, r *http.Request) {
			http.Redirect(out, r, "http://169.254.169.254/latest/", http.StatusMovedPermanently)
		},
		"repeats it": func(out http.ResponseWriter, r *http.Request) {
			http.Error(out, password+" "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTwin(t)
			w.put(at("web", 1))
			h := begin(t, map[string]any{"username": "mesh", "password": password}, w)
			has(t, h, "web", "10.0.0.1")
			w.change(func() { w.apart = lie })
			w.keeps(t, h, "", 3, "web", "10.0.0.1")
			h.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
				for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte("mesh:" + password))} {
					if all := fmt.Sprint(text, fields); strings.Contains(all, secret) {
						t.Errorf("it is told: %s", all)
					}
				}
				return fields["error"] != ""
			})
		})
	}
}

// TestHeld: servers that remember others each time fill no memory.
func TestHeld(t *testing.T) {
	v := newView(100)
	for round := range 50 {
		var l list
		for i := range 90 {
			l.instances = append(l.instances, &instance{facts: facts{App: "A", ID: fmt.Sprint(round, "-", i), Status: fmt.Sprint(round)}})
		}
		if err := v.full(&l, false, time.Unix(int64(round), 0)); err != nil {
			t.Fatal(err)
		}
		if n := len(v.have) + len(v.held) + len(v.bad); n > 100 || len(v.counts) > 100 || len(v.status) > 200 {
			t.Fatalf("round %d: %d are kept, %d statuses", round, n, len(v.counts))
		}
	}
	if v.left == 0 {
		t.Error("nothing is left out")
	}
}
