package wasm

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"

	"encoding/json"
)

// starter is run or spawn.
type starter func(testing.TB, []byte, *pb.Hello, ...func(*Config)) *core

// mode runs the test's guest, with limits that it doesn't come to.
func mode(start starter, t testing.TB, what string, g spec.Grants, more ...func(*Config)) *core {
	t.Helper()
	return limited(start, t, what, g, &pb.Limits{CallMs: 60_000, ProgressMs: 60_000}, more...)
}

// limited runs it with limits.
func limited(start starter, t testing.TB, what string, g spec.Grants, limits *pb.Limits, more ...func(*Config)) *core {
	t.Helper()
	g.Env = append(g.Env, "MODE")
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	hello := &pb.Hello{Instance: "guest", Grants: text, Limits: limits}
	environ := func(c *Config) { c.Environ = append(c.Environ, "MODE="+what, "SECRET=x") }
	return start(t, build(t, "./testdata/guest"), hello, append(more, environ)...)
}

// A guest that breaks a rule ends its runner, with words that say which.
func TestMisbehaviour(t *testing.T) {
	for _, c := range []struct{ mode, want string }{
		{"exit", "the module ended with status 3"},
		{"text", `it wrote text to standard output ("Hello, world\n")`},
		{"half", "in the middle of a frame, with 3 of 100 bytes written"},
		{"large", "it wrote a frame of 1048577 bytes to standard output; a frame has at most 1048576"},
		{"undecodable", "a message of 3 bytes can't be decoded"},
		{"end", "the module ended with status 1"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			err := mode(spawn, t, c.mode, spec.Grants{}).result()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	t.Run("loop", func(t *testing.T) {
		limited(spawn, t, "loop", spec.Grants{}, &pb.Limits{
			CallMs: 60_000, ProgressMs: 1000,
		}).hangs("the module hangs: for 1s it has neither waited nor read nor written (limits.progress)")
	})
}

// A runner holds no more of a flood than credit allows, whoever floods.
func TestFloods(t *testing.T) {
	for _, name := range []string{"flood", "rows"} {
		t.Run(name, func(t *testing.T) {
			c := mode(run, t, name, spec.Grants{})
			before := heap()
			c.exhaust()
			if more := crest() - before; more > 200<<20 {
				t.Errorf("the heap has grown by %d MiB", more>>20)
			}
		})
	}
}

// exhaust takes messages, and gives no credit back, until hardly any is left or the session ends.
func (c *core) exhaust() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	for spent := 0; spent < session.InitialCredit-2*session.MaxMessage; {
		_, cost, err := c.Recv(ctx)
		if ctx.Err() != nil {
			c.t.Fatalf("after messages that cost %d there are no more: %v", spent, err)
		}
		if err != nil {
			return
		}
		spent += cost
	}
}

// crest waits until the heap has stopped growing, or is beyond all bounds, and returns its size.
func crest() int64 {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for last := heap(); ; {
		<-tick.C
		now := heap()
		if now < last+1<<20 || now > 1<<30 {
			return now
		}
		last = now
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A guest has what is granted, and what is not is said with the line to add.
func TestGrants(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://127.0.0.1:2/elsewhere", http.StatusFound)
			return
		}
		fmt.Fprint(w, "hello")
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mode(run, t, "world", spec.Grants{HTTP: []string{server.URL + "/*"}, Files: []string{file + ":ro"}, Env: []string{"URL", "FILE"}}, func(c *Config) {
		c.Environ = []string{"URL=" + server.URL, "FILE=" + file}
	})
	if c.next().Ready == nil {
		t.Fatal("no Ready")
	}
	got := map[string]string{}
	for m := c.next(); m.Synced == nil; m = c.next() {
		for _, r := range m.Rows.Tables[0].Upserts {
			got[r.Key] = string(r.Payload)
		}
	}
	for key, want := range map[string]string{
		"granted": "200 hello", "redirected": "http://127.0.0.1:2 is not granted", "denied": "http://127.0.0.1:1 is not granted; add it to allow.http",
		"slept": "true", "year": "2022", "file": "content", "other": "ermission denied", "environment": "MODE=world",
	} {
		if !strings.Contains(got[key], want) {
			t.Errorf("%s: got %q, want %q", key, got[key], want)
		}
	}
	if strings.Contains(got["environment"], "SECRET") {
		t.Errorf("it has %q", got["environment"])
	}
	for _, line := range []string{`allow: {http: ["http://127.0.0.1:1/*"]}`, `allow: {files: ["/etc/passwd:ro"]}`} {
		if n := strings.Count(c.stderr.String(), line); n != 1 {
			t.Errorf("the log has %s %d times: %s", line, n, c.stderr)
		}
	}
}

// A module without timers is woken when it asked for it.
func TestWake(t *testing.T) {
	c := mode(run, t, "wake", spec.Grants{})
	if c.next().Ready == nil || c.next().Synced == nil {
		t.Error("it was not woken")
	}
}

// hangs waits for the end of a runner whose module computes without end: it is ended by who watches
// it, or waits for its answer, which says so, or, where a garbage collection that waits for the
// module has stopped these, by the kernel.
func (c *core) hangs(want string) {
	c.t.Helper()
	err := c.result()
	if err == nil || !strings.Contains(err.Error(), want) && c.process.Wait() != "signal: killed" {
		c.t.Errorf("it ended with %v; process: %s", err, c.process.Wait())
	}
}

func (c *core) patch(id uint64, name string) *pb.Patched {
	c.t.Helper()
	c.send(&pb.FromCore{Patch: &pb.Patch{Id: id, Type: "type.googleapis.com/a.B", Resources: []*pb.Resource{{Name: name, Bytes: []byte("x")}}}})
	for {
		if m := c.next(); m.Patched != nil {
			return m.Patched
		}
	}
}

// Stateless guests read rows by Get, and one that fails is replaced.
func TestPatch(t *testing.T) {
	c := mode(spawn, t, "patch", spec.Grants{})
	if r := c.next().Ready; r == nil || r.Kind != pb.KindPatch {
		t.Fatalf("got %+v", r)
	}
	var upserts []*pb.Row
	for n := range 2500 {
		upserts = append(upserts, &pb.Row{Key: fmt.Sprintf("k%d", n), Payload: make([]byte, 300)})
	}
	upserts[1].Payload = []byte("one")
	state := func(number uint64, whole bool, rows ...*pb.Row) *pb.FromCore {
		return &pb.FromCore{
			State: &pb.State{Revision: &pb.Revision{Number: number}, Whole: whole, Tables: []*pb.TableRows{{Table: "endpoints", Upserts: rows}}},
		}
	}
	c.send(state(1, true, upserts...))
	c.send(state(2, false, &pb.Row{Key: "more", Payload: make([]byte, 900_000)}))
	if got := c.patch(1, "rows"); got.Error != "" || string(got.Resources[0].Bytes) != "2501 one true" {
		t.Errorf("got %+v", got)
	}
	for n, bad := range []struct{ name, want, limit string }{
		{"exit", "the module ended with status 7", ""}, {"trap", "nil pointer", ""},
	} {
		if got := c.patch(uint64(10+n), bad.name); !strings.Contains(got.Error, bad.want) || got.Limit != bad.limit {
			t.Errorf("%s: got %q, limit %q", bad.name, got.Error, got.Limit)
		}
		if got := c.patch(uint64(20+n), "fine"); got.Error != "" || string(got.Resources[0].Bytes) != "x!" {
			t.Errorf("after %s: got %+v", bad.name, got)
		}
	}
}

// short are limits of a call alone that guests come to which are slow on purpose.
var short = &pb.Limits{CallMs: 1000, ProgressMs: 60_000}

// A patch that answers too late is stopped, and another instance goes on; one that computes without
// end ends the runner.
func TestLatePatch(t *testing.T) {
	c := limited(spawn, t, "patch", spec.Grants{}, short)
	if r := c.next().Ready; r == nil {
		t.Fatal("no Ready")
	}
	if got := c.patch(1, "slow"); !strings.Contains(got.Error, "did not answer within 1s (limits.call)") || got.Limit != "call" {
		t.Errorf("got %q, limit %q", got.Error, got.Limit)
	}
	var got *pb.Patched
	for end, id := time.Now().Add(patience), uint64(2); ; id++ { // to start another instance may take longer than a call may
		if got = c.patch(id, "fine"); got.Error == "" || time.Now().After(end) {
			break
		}
	}
	if got.Error != "" || string(got.Resources[0].Bytes) != "x!" {
		t.Errorf("after slow: got %+v", got)
	}
	c.loops(&pb.FromCore{Patch: &pb.Patch{Id: 1000, Type: "type.googleapis.com/a.B", Resources: []*pb.Resource{{Name: "loop"}}}}, func(m *pb.FromPlugin) bool {
		return m.Patched != nil && strings.Contains(m.Patched.Error, "limits.call")
	})
}

// loops sends a guest what it computes for without end: its answer says that it is late, if the
// runner comes to answer, and then the runner ends.
func (c *core) loops(m *pb.FromCore, late func(*pb.FromPlugin) bool) {
	c.t.Helper()
	c.send(m)
	if got, err := c.try(); err == nil && !late(got) {
		c.t.Errorf("got %+v", got)
	}
	c.hangs("goes on computing")
}

// authenticate asks an authenticator and returns its answer.
func (c *core) authenticate(id uint64, token string) *pb.Caller {
	c.t.Helper()
	c.send(&pb.FromCore{Authenticate: &pb.Authenticate{Id: id, Headers: map[string]string{"authorization": "Bearer " + token}}})
	for {
		if m := c.next(); m.Caller != nil && m.Caller.Id == id {
			return m.Caller
		}
	}
}

// An authenticator that fails says so at once, and goes on.
func TestAuthenticator(t *testing.T) {
	c := mode(spawn, t, "authenticator", spec.Grants{}, func(c *Config) { c.Instances = 2 })
	if r := c.next().Ready; r == nil || r.Kind != pb.KindAuthenticator {
		t.Fatalf("got %+v", r)
	}
	for n, tt := range []struct{ token, identity, refusal, failure string }{
		{"good", "spiffe://cluster.local/ns/shop/sa/web", "", ""},
		{"bad", "", "the token is unknown", ""},
		{"trap", "", "", "the plugin panicked"},
		{"exit", "", "", "the module ended with status 7"},
		{"away", "", "", "asking my server: unavailable"},
		{"good", "spiffe://cluster.local/ns/shop/sa/web", "", ""},
	} {
		got := c.authenticate(uint64(n+1), tt.token)
		if strings.Join(got.Identities, " ") != tt.identity || got.Refusal != tt.refusal ||
			!strings.Contains(got.Failure, tt.failure) || tt.failure == "" && got.Failure != "" {
			t.Errorf("%s: got %+v", tt.token, got)
		}
	}
}

// An authenticator that is late is stopped, and the caller told so; one that computes without end
// ends the runner.
func TestLateAuthenticator(t *testing.T) {
	c := limited(spawn, t, "authenticator", spec.Grants{}, short, func(c *Config) { c.Instances = 2 })
	if r := c.next().Ready; r == nil {
		t.Fatal("no Ready")
	}
	if got := c.authenticate(1, "slow"); !strings.Contains(got.Failure, "did not answer within 1s (limits.call)") || got.Limit != "call" {
		t.Errorf("got %+v", got)
	}
	c.loops(&pb.FromCore{Authenticate: &pb.Authenticate{Id: 2, Headers: map[string]string{"authorization": "Bearer loop"}}}, func(m *pb.FromPlugin) bool {
		return m.Caller != nil && strings.Contains(m.Caller.Failure, "limits.call") && m.Caller.Limit == "call"
	})
}
