package history

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/google/go-cmp/cmp"
)

const typeA = "type.googleapis.com/test.A"

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newHistory(t *testing.T, cfg Config) *History {
	t.Helper()
	if cfg.Revisions == 0 {
		cfg.Revisions = 1000
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = 1 << 30
	}
	if cfg.Log == nil {
		cfg.Log = silent()
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func body(name, content string) *view.Body { return view.NewBody(typeA, name, []byte(content), 0) }

func set(pairs ...string) *view.Set {
	var all []*view.Body
	for _, p := range pairs {
		name, content, _ := strings.Cut(p, "=")
		all = append(all, body(name, content))
	}
	return view.NewSet(all)
}

// words are what a snapshot has, by name.
func words(s *view.Snapshot) map[string]string {
	out := map[string]string{}
	for _, b := range s.Known() {
		out[b.Name()] = "absent"
		if b.Exists() {
			out[b.Name()] = string(b.Value())
		}
	}
	return out
}

// world is connections that are shown things at random, and what each revision was.
type world struct {
	*rand.Rand
	h     *History
	rev   uint64
	sets  []*view.Set
	now   map[string]*view.Snapshot
	conns map[string]uint64
	was   map[uint64]map[string]map[string]string
}

// change makes another set of one of those that there are, or a new one.
func (w *world) change(i int) {
	name := fmt.Sprint("r", w.IntN(12))
	content := fmt.Sprint(w.IntN(4))
	switch w.IntN(6) {
	case 0:
		w.sets[i] = w.sets[i].With(nil, []string{name})
	case 1:
		w.sets[i] = w.sets[i].With([]*view.Body{view.Absent(name)}, nil)
	case 2:
		w.sets[i] = view.NewSet(append([]*view.Body(nil), w.sets[i].Bodies()...)) // of no lineage
	default:
		w.sets[i] = w.sets[i].With([]*view.Body{body(name, content)}, nil)
	}
}

// shows shows some connections what there is, of some of the sets.
func (w *world) shows(number uint64) {
	for _, node := range slices.Sorted(maps.Keys(w.conns)) {
		if w.IntN(3) > 0 {
			w.note(number, node)
		}
	}
}

func (w *world) note(number uint64, node string) {
	a, b := w.IntN(len(w.sets)), w.IntN(len(w.sets))
	parts := []*view.Set{w.sets[b]}
	if a == b || w.IntN(4) == 0 {
		parts = nil
	}
	s := view.NewSnapshot(w.sets[a], parts, w.IntN(2) == 0)
	w.now[node] = s
	w.h.Note(number, Shown{Key: Key{node, typeA}, Connection: w.conns[node], Plugin: "istio", Snapshot: s})
}

// revise makes a revision, and notes what is served until the next.
func (w *world) revise() {
	w.rev += 1 + uint64(w.IntN(2))
	for i := range w.sets {
		if w.IntN(2) == 0 {
			w.change(i)
		}
	}
	w.shows(w.rev)
	w.h.Shown(report.Push{Revision: w.rev, Kind: "full"})
	for range w.IntN(3) { // what comes meanwhile
		switch node := fmt.Sprint("p", w.IntN(8)); w.IntN(3) {
		case 0:
			if conn, ok := w.conns[node]; ok {
				w.h.Left(node, conn)
				delete(w.conns, node)
			}
		default:
			w.conns[node] = uint64(w.rev)
			w.note(0, node)
		}
		if w.IntN(3) == 0 {
			w.h.Flush()
		}
	}
	// Those that have left are there until the next revision.
	at := map[string]map[string]string{}
	for node, s := range w.now {
		at[node] = words(s)
	}
	w.was[w.rev] = at
	for node := range w.now {
		if _, there := w.conns[node]; !there {
			delete(w.now, node)
		}
	}
}

func newWorld(h *History, seed uint64) *world {
	w := &world{
		Rand: rand.New(rand.NewPCG(seed, 1)), h: h, now: map[string]*view.Snapshot{}, conns: map[string]uint64{},
		was: map[uint64]map[string]map[string]string{},
	}
	for i := range 3 {
		w.sets = append(w.sets, set(fmt.Sprintf("r%d=x", i)))
	}
	return w
}

// agrees checks that each revision that is kept is as it was.
func (w *world) agrees(t *testing.T) {
	t.Helper()
	w.h.Flush()
	oldest, _, _ := w.h.log.Span()
	for _, rev := range slices.Sorted(maps.Keys(w.was)) {
		im, err := w.h.At(rev)
		if rev < oldest {
			if err == nil || !strings.Contains(err.Error(), "is not kept any more") {
				t.Fatalf("revision %d: %v", rev, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]map[string]string{}
		for k := range im.Places {
			got[k.Node] = words(im.Snapshot(k))
		}
		if !cmp.Equal(got, w.was[rev]) {
			t.Fatalf("revision %d of %d: %s", rev, w.rev, cmp.Diff(w.was[rev], got))
		}
	}
	w.counts(t)
}

// counts checks that what is kept of resources is what is named, and no more.
func (w *world) counts(t *testing.T) {
	t.Helper()
	now, old := map[string]int{}, map[string]int{}
	for id := range w.h.log.lines {
		for name, r := range w.h.log.refs(id) {
			if r != "" {
				now[bodyKey(name, r)]++
			}
		}
	}
	bytes := int64(0)
	for _, e := range w.h.log.entries {
		bytes += e.bytes
		for _, names := range e.names {
			for name, r := range names {
				if r != nil && *r != "" {
					old[bodyKey(name, *r)]++
				}
			}
		}
	}
	for _, p := range w.h.pins {
		for _, s := range p.image.lines {
			for _, b := range s.Bodies() {
				if b.Exists() {
					old[bodyKey(b.Name(), ref(b.Version()))]++
				}
			}
		}
	}
	if bytes != w.h.log.bytes {
		t.Fatalf("%d bytes are counted, there are %d", w.h.log.bytes, bytes)
	}
	for key, h := range w.h.log.bodies {
		if h.now != now[key] || h.old != old[key] || h.now+h.old == 0 {
			t.Fatalf("%q: counted %d and %d, named %d and %d times", key, h.now, h.old, now[key], old[key])
		}
		delete(now, key)
		delete(old, key)
	}
	if len(now)+len(old) > 0 {
		t.Fatalf("nothing is kept of %v %v", now, old)
	}
}

// TestHistory: whatever connections are shown, each revision that is kept is as it was; in memory,
// with few revisions, from a file, while memory is short, and after each restart.
func TestHistory(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			cfg := Config{}
			if seed%2 == 1 {
				cfg.Dir = t.TempDir()
			}
			if seed%3 == 1 {
				cfg.Revisions = 7
			}
			w := newWorld(newHistory(t, cfg), seed)
			for i := range 60 {
				w.revise()
				if w.IntN(5) == 0 && i > 3 {
					w.pin(t)
				}
				if seed > 3 && w.IntN(10) == 0 {
					w.letGo()
				}
				if i%7 == 6 {
					w.agrees(t)
				}
				if cfg.Dir != "" && i%20 == 19 {
					w.restart(t, cfg)
				}
			}
			w.agrees(t)
		})
	}
}

// letGo has memory be short: of nodes that have gone nothing stays in the newest revision.
func (w *world) letGo() {
	w.h.LetGo(uint64(w.h.log.bytes) / 2)
	maps.DeleteFunc(w.was[w.rev], func(node string, _ map[string]string) bool {
		_, connected := w.conns[node]
		return !connected
	})
}

// pin pins some revision, or takes a pin away.
func (w *world) pin(t *testing.T) {
	t.Helper()
	w.h.Flush()
	if w.IntN(3) == 0 {
		w.h.Unpin("id=p*")
		return
	}
	if _, _, err := w.h.Pin(Pin{Revision: w.rev, Proxies: []string{"", "id=p*"}[w.IntN(2)], Since: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
}

// restart opens the file anew. All connections come back, with other sets of the same content.
func (w *world) restart(t *testing.T, cfg Config) {
	t.Helper()
	w.h.Flush()
	pins, images := w.h.Pins()
	number := w.h.Number()
	if err := w.h.Close(); err != nil {
		t.Fatal(err)
	}
	w.h = newHistory(t, Config{Dir: cfg.Dir, Revisions: cfg.Revisions})
	if w.h.Number() != number {
		t.Fatalf("the newest revision is %d, was %d", w.h.Number(), number)
	}
	w.agrees(t)
	again, restored := w.h.Pins()
	for i, p := range pins {
		if p.Revision != again[i].Revision || p.Proxies != again[i].Proxies || !p.Since.Equal(again[i].Since) {
			t.Fatalf("pin %v is %v", p, again[i])
		}
		for k := range images[i].Places {
			if a, b := words(images[i].Snapshot(k)), words(restored[i].Snapshot(k)); !cmp.Equal(a, b) {
				t.Fatal(cmp.Diff(a, b))
			}
		}
	}
	for i, s := range w.sets {
		var all []*view.Body
		for _, b := range s.Bodies() {
			all = append(all, body(b.Name(), string(b.Value())))
			if !b.Exists() {
				all[len(all)-1] = view.Absent(b.Name())
			}
		}
		w.sets[i] = view.NewSet(all)
	}
	// All that are still there come back; the time of the others is over.
	w.h.since = w.h.since.Add(-2 * returnPatience)
	for node := range w.conns {
		w.note(0, node)
	}
	at := w.was[w.rev]
	for node, s := range w.now {
		at[node] = words(s)
	}
}

// TestBounds: however many revisions there are, and however large resources, what is kept is
// bounded, and what is served now is always there.
func TestBounds(t *testing.T) {
	h := newHistory(t, Config{Revisions: 50, Bytes: 1 << 20})
	large := strings.Repeat("x", 200<<10)
	s := set("a=0", "b=0")
	for i := range uint64(3000) {
		content := fmt.Sprint(i)
		if i%100 > 90 {
			content += large
		}
		s = s.With([]*view.Body{body("a", content)}, nil)
		h.Note(i+1, Shown{Key: Key{"p", typeA}, Connection: 1, Snapshot: view.NewSnapshot(s, nil, true)})
		h.Shown(report.Push{Revision: i + 1, Kind: "full"})
		h.Flush()
		if n := len(h.log.entries); n > 50 || h.log.bytes > 1<<20 {
			t.Fatalf("%d revisions, %d bytes", n, h.log.bytes)
		}
	}
	im, err := h.At(3000)
	if err != nil || words(im.Snapshot(Key{"p", typeA}))["b"] != "0" {
		t.Fatal(err)
	}
	if _, err := h.At(2000); err == nil || !strings.Contains(err.Error(), "to 3000 are") {
		t.Error(err)
	}
	if _, err := h.At(3001); err == nil || !strings.Contains(err.Error(), "there is no revision 3001 yet") {
		t.Error(err)
	}
	if n := len(h.log.bodies); n > 52 {
		t.Errorf("%d resources are kept", n)
	}
}

// TestLetGo: where memory is short the oldest revisions go, as many as have to, on disk too; what
// is served and what is pinned stays, and so does the newest revision.
func TestLetGo(t *testing.T) {
	cfg := Config{Dir: t.TempDir()}
	h := newHistory(t, cfg)
	for i := range uint64(10) {
		s := set("a="+fmt.Sprint(i)+strings.Repeat("x", 100<<10), "b=0")
		h.Note(i+1, Shown{Key: Key{"p", typeA}, Connection: 1, Snapshot: view.NewSnapshot(s, nil, true)})
		h.Shown(report.Push{Revision: i + 1, Kind: "full"})
		h.Flush()
	}
	im, _, err := h.Pin(Pin{Revision: 2, Since: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(oldest uint64) {
		t.Helper()
		if got, newest, _ := h.log.Span(); got != oldest || newest != 10 {
			t.Errorf("revisions %d to %d are kept, not %d to 10", got, newest, oldest)
		}
		if a := words(im.Snapshot(Key{"p", typeA}))["a"]; !strings.HasPrefix(a, "1x") {
			t.Errorf("pinned is %.5s", a)
		}
	}
	h.LetGo(150 << 10)
	expect(3)
	h.LetGo(math.MaxUint64)
	expect(10)
	if most := int64(2 * pushCost); h.log.bytes > most {
		t.Errorf("%d bytes are left", h.log.bytes)
	}
	h.LetGo(1)
	expect(10)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = newHistory(t, cfg)
	_, images := h.Pins()
	im = images[0]
	expect(10)
}

// TestLetGoOfThoseWhoLeft: where memory is short what nodes had who came and went within the newest
// revision is gone, in whatever order their connections left, and no revision is; what others have
// stays.
func TestLetGoOfThoseWhoLeft(t *testing.T) {
	h := newHistory(t, Config{})
	shows := func(number uint64, node string, connection uint64, content string) {
		h.Note(number, Shown{Key: Key{node, typeA}, Connection: connection, Snapshot: view.NewSnapshot(set("a="+content), nil, true)})
	}
	for i := range uint64(3) {
		shows(i+1, "stays", 1, fmt.Sprint(i))
		h.Shown(report.Push{Revision: i + 1, Kind: "full"})
		h.Flush()
	}
	for i := range uint64(100) {
		node := fmt.Sprint("n", i%10)
		shows(0, node, i+2, strings.Repeat("x", 10<<10)+fmt.Sprint(i))
		h.Flush()
	}
	for i := uint64(100); i > 0; i-- {
		h.Left(fmt.Sprint("n", (i-1)%10), i+1)
	}
	h.LetGo(1 << 20)
	if oldest, newest, _ := h.log.Span(); oldest != 1 || newest != 3 {
		t.Errorf("revisions %d to %d are kept", oldest, newest)
	}
	if len(h.log.places) != 1 || len(h.log.bodies) != 3 {
		t.Errorf("%d places and %d resources are kept", len(h.log.places), len(h.log.bodies))
	}
	im, err := h.At(3)
	if err != nil || words(im.Snapshot(Key{"stays", typeA}))["a"] != "2" {
		t.Error(err)
	}
}

// TestUnchanged: a revision that changed nothing is forgotten when the next comes, and leads to the
// one before.
func TestUnchanged(t *testing.T) {
	h := newHistory(t, Config{})
	s := set("a=1")
	shown := func(rev uint64, s *view.Set) {
		h.Note(rev, Shown{Key: Key{"p", typeA}, Connection: 1, Snapshot: view.NewSnapshot(s, nil, true)})
		h.Shown(report.Push{Revision: rev, Kind: "full"})
		h.Flush()
	}
	shown(1, s)
	shown(2, s.With([]*view.Body{body("a", "2")}, nil))
	h.Shown(report.Push{Revision: 3, Kind: "full"})
	h.Shown(report.Push{Revision: 4, Kind: "full", Held: true})
	h.Shown(report.Push{Revision: 5, Kind: "endpoints"})
	h.Flush()
	if got := h.Summary().Revisions; len(got) != 3 || !got[2].Unchanged || got[1].Unchanged {
		t.Errorf("%+v", got)
	}
	shown(6, set("a=6"))
	var revs []uint64
	for _, k := range h.Summary().Revisions {
		revs = append(revs, k.Push.Revision)
	}
	if !slices.Equal(revs, []uint64{1, 2, 6}) {
		t.Error(revs)
	}
	for rev, want := range map[uint64]string{1: "1", 2: "2", 3: "2", 5: "2", 6: "6"} {
		im, err := h.At(rev)
		if err != nil {
			t.Fatal(err)
		}
		if got := words(im.Snapshot(Key{"p", typeA}))["a"]; got != want {
			t.Errorf("revision %d: %s, want %s", rev, got, want)
		}
	}
}

// TestByView: a node that was not there gets what others of its view had, if that was one thing.
func TestByView(t *testing.T) {
	h := newHistory(t, Config{})
	v := &view.View{Label: "sidecars", Facts: map[string]string{"ns": "shop"}}
	other := &view.View{Label: "gateways"}
	split := &view.View{Label: "split"}
	one, two := set("a=1"), set("a=2")
	for node, s := range map[string]*view.Set{"a": one, "b": one} {
		h.Note(1, Shown{Key: Key{node, typeA}, Plugin: "istio", View: v, Snapshot: view.NewSnapshot(s, nil, true)})
	}
	for node, s := range map[string]*view.Set{"c": one, "d": two} {
		h.Note(1, Shown{Key: Key{node, typeA}, Plugin: "istio", View: split, Snapshot: view.NewSnapshot(s, nil, true)})
	}
	h.Shown(report.Push{Revision: 1, Kind: "full"})
	im, err := h.At(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		node   string
		v      *view.View
		plugin string
		want   By
	}{
		{"a", other, "istio", Own}, {"new", v, "istio", View}, {"new", v, "mine", Live}, {"new", other, "istio", Live}, {"new", split, "istio", Live},
		{"new", &view.View{Label: "sidecars"}, "istio", Live},
	} {
		s, by := im.Of(Key{c.node, typeA}, c.plugin, c.v)
		if by != c.want || (s == nil) != (by == Live) {
			t.Errorf("%+v: %s", c, by)
		}
	}
	a, _ := im.Of(Key{"a", typeA}, "istio", v)
	if b, _ := im.Of(Key{"new", typeA}, "istio", v); a != b {
		t.Error("equal places are two snapshots")
	}
}

// TestFiles: files that can't be used are said, and set aside where that helps.
func TestFiles(t *testing.T) {
	t.Run("locked", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		newHistory(t, Config{Dir: dir})
		_, err := New(Config{Dir: dir, Revisions: 1, Log: silent()})
		if err == nil || !strings.Contains(err.Error(), "another control plane has it open") {
			t.Error(err)
		}
	})
	t.Run("broken", func(t *testing.T) {
		for name, damage := range map[string]func([]byte) []byte{
			"text":  func([]byte) []byte { return []byte("hello") },
			"zeros": func(b []byte) []byte { clear(b); return b },
			"cut":   func(b []byte) []byte { return b[:len(b)/3] },
			"format": func(b []byte) []byte {
				return []byte(strings.ReplaceAll(string(b), "format"+format, "format0"))
			},
			"bodies": func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "content of a", "tnetnoc fo b")) },
		} {
			dir := t.TempDir()
			path := filepath.Join(dir, FileName)
			h := newHistory(t, Config{Dir: dir})
			h.Note(7, Shown{Key: Key{"p", typeA}, Snapshot: view.NewSnapshot(set("a=content of a"), nil, true)})
			h.Shown(report.Push{Revision: 7, Kind: "full"})
			if _, note, err := h.Pin(Pin{Revision: 7}); err != nil || note != "" {
				t.Fatal(note, err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(raw), 0o600); err != nil {
				t.Fatal(err)
			}
			var lines strings.Builder
			h = newHistory(t, Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&lines, nil))})
			aside, _ := filepath.Glob(path + ".broken-*")
			if pins, _ := h.Pins(); len(pins) != 0 || h.Number() != 0 || len(aside) != 1 || !strings.Contains(lines.String(), aside[0]) {
				t.Errorf("%s: %d pins, revision %d, %v, log: %s", name, len(pins), h.Number(), aside, lines.String())
			}
		}
	})
	t.Run("no rights", func(t *testing.T) {
		if os.Geteuid() == 0 {
			need.Impossible(t, "root may do anything")
		}
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{dir, filepath.Join(dir, "sub")} {
			if _, err := New(Config{
				Dir: d, Revisions: 1, Log: silent(),
			}); err == nil || !strings.Contains(err.Error(), "stateDir: ") || !strings.Contains(err.Error(), dir) {
				t.Error(err)
			}
		}
	})
	t.Run("off", func(t *testing.T) {
		h, err := New(Config{})
		if h != nil || err != nil {
			t.Fatal(h, err)
		}
		h.Note(1, Shown{Key: Key{"p", typeA}})
		h.Shown(report.Push{})
		h.Left("p", 1)
		h.Flush()
		if _, err := h.At(1); !errors.Is(err, errOff) {
			t.Error(err)
		}
	})
}

// TestUnwritten: a file that can't be written is said once, and holds nothing up; when it can be
// again it has all.
func TestUnwritten(t *testing.T) {
	dir := t.TempDir()
	var lines strings.Builder
	h := newHistory(t, Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&lines, nil))})
	w := newWorld(h, 5)
	for range 5 {
		w.revise()
		h.Flush()
	}
	good := h.filed.file
	h.filed.file = &file{path: good.path, db: closed(t)}
	h.log.ops.all = nil
	for range 10 {
		w.revise()
		h.Flush()
	}
	if strings.Count(lines.String(), "can't be written") != 1 || h.Summary().Fault == "" {
		t.Errorf("it said: %s", lines.String())
	}
	if _, note, err := h.Pin(Pin{Revision: w.rev}); err != nil || !strings.Contains(note, "may not outlive a restart") {
		t.Error(note, err)
	}
	h.filed.file, h.filed.trouble.retry = good, time.Now().Add(-time.Second)
	w.revise()
	h.Flush()
	if h.Summary().Fault != "" || !strings.Contains(lines.String(), "written again") {
		t.Errorf("it said: %s", lines.String())
	}
	w.restart(t, Config{Dir: dir})
}

// TestDiff: each difference is named once, with the proxies that have it.
func TestDiff(t *testing.T) {
	h := newHistory(t, Config{})
	one := set("a=1", "b=1")
	two := one.With([]*view.Body{body("a", "2")}, []string{"b"})
	show := func(rev uint64, nodes map[string]*view.Set) {
		for node, s := range nodes {
			h.Note(rev, Shown{Key: Key{node, typeA}, Snapshot: view.NewSnapshot(s, nil, true)})
		}
		h.Shown(report.Push{Revision: rev, Kind: "full"})
	}
	show(1, map[string]*view.Set{"p": one, "q": one, "r": one})
	h.Left("r", 0)
	show(2, map[string]*view.Set{"p": two, "q": two, "s": two})
	d, err := h.Diff(1, 2, "")
	if err != nil || d.Compared != 2 || !slices.Equal(d.Came, []string{"s"}) || !slices.Equal(d.Left, []string{"r"}) || len(d.Resources) != 2 {
		t.Fatalf("%+v %v", d, err)
	}
	for i, want := range []string{"a 1 2 [p q]", "b 1  [p q]"} {
		r := d.Resources[i]
		if got := fmt.Sprint(r.Name, " ", string(r.BeforeValue), " ", string(r.AfterValue), " ", r.Proxies); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if d, err = h.Diff(2, 1, "q"); err != nil || d.Compared != 1 || len(d.Resources) != 2 || string(d.Resources[0].AfterValue) != "1" {
		t.Errorf("%+v %v", d, err)
	}
	if _, err = h.Diff(1, 2, "x"); err == nil {
		t.Error("there is no such proxy")
	}
	if _, err = h.Diff(1, 9, ""); err == nil {
		t.Error("there is no such revision")
	}
}
