package ui

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestStatic: the page has its policy, which lets no script in but its own, and none stands in it.
func TestStatic(t *testing.T) {
	h := New(func(string) []byte { return nil }).Static("/ui/")
	for _, path := range []string{"/ui/", "/ui/page.js", "/ui/page.css", "/ui/LICENCES.txt"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: %d with %d bytes", path, w.Code, w.Body.Len())
		}
		p := w.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(p, want) {
				t.Errorf("%s: the policy lacks %s: %s", path, want, p)
			}
		}
		if strings.Contains(p, "unsafe") || strings.Contains(p, "http") {
			t.Errorf("%s: the policy is %s", path, p)
		}
		for name, want := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	for _, path := range []string{"/ui/sums", "/ui/../go.mod", "/ui/ui.go"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	index, err := files.ReadFile("dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	if bad := regexp.MustCompile(`(?i)<script[^>]*>[^<]|<style|\son\w+=|https?:|style=`).Find(index); bad != nil {
		t.Errorf("the page has %q in it", bad)
	}
}

// TestSize: what a browser fetches is small.
func TestSize(t *testing.T) {
	const most = 250 << 10
	var all bytes.Buffer
	for _, name := range []string{"index.html", "page.css", "page.js"} {
		text, err := files.ReadFile("dist/" + name)
		if err != nil {
			t.Fatal(err)
		}
		w := gzip.NewWriter(&all)
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if all.Len() > most {
		t.Errorf("it has %d bytes, more than %d", all.Len(), most)
	}
}

// TestMadeOfTheSources: dist is made of the sources that are there, and of no others.
func TestMadeOfTheSources(t *testing.T) {
	text, err := os.ReadFile("dist/sums")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"dist/sums": true}
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		body, err := os.ReadFile(name)
		if !ok || err != nil {
			t.Fatalf("dist/sums: %q: %v", line, err)
		}
		listed[name] = true
		if got := sha256.Sum256(body); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has changed since dist was made: run make ui, and commit", name)
		}
	}
	for _, dir := range []string{"page", "dist"} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.Name() == "node_modules":
				return fs.SkipDir
			case !d.IsDir() && !listed[filepath.ToSlash(name)]:
				t.Errorf("%s is not in dist/sums: run make ui, and commit", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTextIsText: nothing of the sources puts text into the page as markup.
func TestTextIsText(t *testing.T) {
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|new Function|javascript:|srcdoc`)
	sources, err := filepath.Glob("page/src/*")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if bad := markup.Find(text); bad != nil {
			t.Errorf("%s has %s", name, bad)
		}
	}
}

// stream is what a client reads.
type stream struct {
	*http.Response
	lines *bufio.Scanner
}

// event returns the data of the next one.
func (s *stream) event(t *testing.T) string {
	t.Helper()
	for s.lines.Scan() {
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			return data
		}
	}
	t.Fatalf("the stream ended: %v", s.lines.Err())
	return ""
}

func follow(t *testing.T, ctx context.Context, url string) *stream {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &stream{resp, bufio.NewScanner(resp.Body)}
}

// TestEvents: all clients are told the same; one more than Most is sent away, and let in when
// another has gone; each is told once more when something has changed.
func TestEvents(t *testing.T) {
	var number atomic.Int64
	p := New(func(string) []byte { return fmt.Appendf(nil, `{"n":%d}`, number.Load()) })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.Events(r.URL.Query().Get("of"), w, r) }))
	t.Cleanup(s.Close)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	var all []*stream
	for range Most {
		c := follow(t, ctx, s.URL)
		if c.Header.Get("Content-Type") != "text/event-stream" || c.event(t) != `{"n":0}` {
			t.Fatal("the first event is missing")
		}
		all = append(all, c)
	}
	if c := follow(t, ctx, s.URL); c.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %s", c.Status)
	}
	number.Store(1)
	for _, c := range all {
		if got := c.event(t); got != `{"n":1}` {
			t.Errorf("then: %s", got)
		}
	}
	_ = all[0].Body.Close()
	for { // until its place is free
		c := follow(t, ctx, s.URL)
		if c.StatusCode == http.StatusOK {
			break
		}
		_, _ = io.Copy(io.Discard, c.Body)
	}
	p.Close()
	for _, c := range all[1:] {
		if _, err := io.Copy(io.Discard, c.Body); err != nil {
			t.Errorf("a stream did not end: %v", err)
		}
	}
}

// TestScopes: who may see one scope is told of it and of no other, and takes no place of those who
// may see everything.
func TestScopes(t *testing.T) {
	p := New(func(scope string) []byte { return fmt.Appendf(nil, `{"of":%q}`, scope) })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.Events(r.URL.Query().Get("of"), w, r) }))
	t.Cleanup(s.Close)
	t.Cleanup(p.Close)
	served := map[string]int{}
	for _, of := range []string{"shop", "bank", "other", "another", ""} {
		for range Most {
			c := follow(t, t.Context(), s.URL+"?of="+of)
			if c.StatusCode != http.StatusOK {
				continue
			}
			if got := c.event(t); got != fmt.Sprintf(`{"of":%q}`, of) {
				t.Errorf("%q is told %s", of, got)
			}
			served[of]++
		}
	}
	for of, want := range map[string]int{"shop": OfScope, "bank": OfScope, "other": Narrow - 2*OfScope, "another": 0, "": Most - Narrow} {
		if served[of] != want {
			t.Errorf("%d of %q are served, not %d", served[of], of, want)
		}
	}
}

// recorder is a client that reads all at once, or nothing once it is stuck.
type recorder struct {
	*httptest.ResponseRecorder
	stuck atomic.Bool
	gone  chan struct{}
}

func (r *recorder) Write(text []byte) (int, error) {
	if r.stuck.Load() {
		<-r.gone
		return 0, os.ErrDeadlineExceeded
	}
	return r.ResponseRecorder.Write(text)
}

// TestSlowClient: who does not read delays nobody, and misses what came meanwhile but for the
// newest; when all have gone nothing is looked at any more.
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looked atomic.Int64
		p := New(func(string) []byte { return fmt.Appendf(nil, `{"n":%d}`, looked.Add(1)) })
		ctx, stop := context.WithCancel(t.Context())
		slow := &recorder{ResponseRecorder: httptest.NewRecorder(), gone: make(chan struct{})}
		quick := &recorder{ResponseRecorder: httptest.NewRecorder(), gone: make(chan struct{})}
		over := make(chan struct{}, 2)
		for _, c := range []*recorder{slow, quick} {
			go func() {
				p.Events("", c, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
				over <- struct{}{}
			}()
			synctest.Wait()
		}
		slow.stuck.Store(true)
		const rounds = 5
		for range rounds {
			<-time.After(every)
			synctest.Wait()
		}
		if n := strings.Count(quick.Body.String(), "data: "); n < rounds {
			t.Errorf("who reads was told %d things", n)
		}
		if n := strings.Count(slow.Body.String(), "data: "); n != 1 {
			t.Errorf("who doesn't was told %d things", n)
		}
		close(slow.gone)
		<-over // it is sent away
		stop()
		<-over
		synctest.Wait()
		before := looked.Load()
		<-time.After(10 * every)
		synctest.Wait()
		if looked.Load() != before {
			t.Error("it is still looked, and nobody sees it")
		}
	})
}

// TestBeat: a client hears something though nothing changes.
func TestBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(func(string) []byte { return []byte(`{}`) })
		ctx, stop := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		over := make(chan struct{})
		go func() {
			p.Events("", w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody))
			close(over)
		}()
		<-time.After(2*beat + every)
		synctest.Wait()
		if lines := strings.Split(w.Body.String(), "\n"); slices.Index(lines, ": still here") < 0 || strings.Count(w.Body.String(), "data: ") != 1 {
			t.Errorf("it heard %q", lines)
		}
		stop()
		<-over
	})
}
