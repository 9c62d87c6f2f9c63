package zookeeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/registrytest"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// liar is a ZooKeeper that answers as it is told to.
type liar struct {
	address string

	mu   sync.Mutex
	tree tree
	// lie answers in its place, if it returns true. It must not write to the connection unless it
	// does. greets is its first answer.
	lie    func(c net.Conn, number, op int, path string) bool
	greets []byte
	conns  map[net.Conn]bool
	// sessions counts them, asked what was asked.
	sessions int
	asked    map[string]int
}

func newLiar(t *testing.T, text string) *liar {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &liar{address: l.Addr().String(), tree: readTree(text), conns: map[net.Conn]bool{}, asked: map[string]int{}, greets: hello(1000)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { w.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		w.change(w.hangUp)
		running.Wait()
	})
	return w
}

func (w *liar) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// hangUp has mu.
func (w *liar) hangUp() {
	for c := range w.conns {
		_ = c.Close()
	}
}

// tell tells of a change of a node's children; mu is held.
func (w *liar) tell(path string) {
	for c := range w.conns {
		_, _ = c.Write(frame(words(-1, 0, 7, 0, 4, 3, path)))
	}
}

func (w *liar) serve(c net.Conn) {
	defer c.Close()
	w.change(func() { w.conns[c] = true; w.sessions++ })
	defer w.change(func() { delete(w.conns, c) })
	if _, err := request(c); err != nil {
		return
	}
	w.mu.Lock()
	greets := w.greets
	w.mu.Unlock()
	if _, err := c.Write(greets); err != nil {
		return
	}
	for {
		b, err := request(c)
		if err != nil || len(b) < 8 {
			return
		}
		number, op, path := int(int32(binary.BigEndian.Uint32(b))), int(int32(binary.BigEndian.Uint32(b[4:]))), ""
		if r := rest(b[8:]); len(r) >= 4 {
			n, _ := r.number()
			path = string(r[:min(max(int(n), 0), len(r))])
		}
		w.mu.Lock()
		w.asked[path]++
		lie := w.lie
		answer := w.answer(number, op, path)
		w.mu.Unlock()
		if lie != nil && lie(c, number, op, path) {
			continue
		}
		if _, err := c.Write(frame(answer)); err != nil {
			return
		}
	}
}

func request(c net.Conn) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > 1<<20 {
		return nil, errors.New("too large")
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	return b, err
}

// answer is the true one; mu is held.
func (w *liar) answer(number, op int, path string) []byte {
	value, there := w.tree[path]
	children := w.tree.children(path)
	stat := make([]byte, statBytes)
	switch there = there || len(children) > 0; {
	case number < 0: // a ping, or who asks
		return words(number, 0, 7, 0)
	case !there:
		return words(number, 0, 7, -101)
	case op == opExists:
		return words(number, 0, 7, 0, stat)
	case op == opGetData:
		return words(number, 0, 7, 0, value, stat)
	case op == opChildren2:
		return listing(number, children...)
	}
	return words(number, 0, 7, 0)
}

// listing answers with children.
func listing(number int, children ...string) []byte {
	all := []any{number, 0, 7, 0, len(children)}
	for _, c := range children {
		all = append(all, c)
	}
	return words(append(all, make([]byte, statBytes))...)
}

func (w *liar) was(path string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[path]
}

// at is a provider's node.
func at(address, more string) string {
	return url.QueryEscape("tri://" + address + ":1/a.B?interface=a.B" + more)
}

// mesh is what there is before it lies.
const mesh = `
/dubbo/a.B/providers/tri://10.0.0.1:1/a.B?interface=a.B
/dubbo/c.D/providers/tri://10.0.0.9:1/c.D?interface=c.D
/services/app/i1 {"address": "10.0.1.1", "port": 80}
/services/app/i2 {"address": "10.0.1.2", "port": 80}
`

const ofB, ofD, ofApp = "/dubbo/a.B/providers", "/dubbo/c.D/providers", "/services/app"

// follows starts the plugin, and waits until it knows what there is.
func (w *liar) follows(t *testing.T) *plugintest.Harness {
	t.Helper()
	h := plugintest.Start(t, Plugin(), map[string]any{
		"servers": []string{w.address}, "session": "1s", "maxRetry": "250ms", "refresh": "1s",
		"limits": map[string]int{"instances": 50, "services": 20, "answerBytes": 1 << 20},
	})
	h.WaitSynced()
	registrytest.Has(t, h, "a.b.dubbo", "10.0.0.1")
	registrytest.Has(t, h, "c.d.dubbo", "10.0.0.9")
	registrytest.Has(t, h, "app.dubbo-application", "10.0.1.1", "10.0.1.2")
	return h
}

// TestLiar: a ZooKeeper that answers what no ZooKeeper does ends nothing, takes nothing away, and
// keeps nothing back of what it doesn't lie about; when it is well again, what there is arrives.
func TestLiar(t *testing.T) {
	// of lies about a path.
	of := func(path string, answer func(number int) []byte) func(net.Conn, int, int, string) bool {
		return func(c net.Conn, number, op int, asked string) bool {
			if asked != path || number < 0 {
				return false
			}
			_, _ = c.Write(answer(number))
			return true
		}
	}
	children := func(all ...string) func(net.Conn, int, int, string) bool {
		return of(ofB, func(number int) []byte { return frame(listing(number, all...)) })
	}
	repeat := func(n int, name func(i int) string) (all []string) {
		for i := range n {
			all = append(all, name(i))
		}
		return all
	}
	first := at("10.0.0.1", "")
	value := func(text string) func(net.Conn, int, int, string) bool {
		return of(ofApp+"/i1", func(number int) []byte { return frame(words(number, 0, 7, 0, text, make([]byte, statBytes))) })
	}
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	slowly := func(c net.Conn, begin []byte) {
		for _, err := c.Write(begin); err == nil; _, err = c.Write([]byte{0}) {
			select {
			case <-never:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	for name, tt := range map[string]struct {
		lie func(c net.Conn, number, op int, path string) bool
		// about is what it lies about, says a reason that is shown. alone: the session goes on.
		about, says string
		alone       bool
	}{
		"more than is taken": {children(repeat(300, func(i int) string { return strings.Repeat("x", 5000) })...), ofB, "answer", true},
		"an error":           {of(ofB, func(n int) []byte { return frame(words(n, 0, 7, -6)) }), ofB, "answer", true},
		"an unknown error":   {of(ofB, func(n int) []byte { return frame(words(n, 0, 7, 12345)) }), ofB, "answer", true},
		"may not be read":    {of(ofB, func(n int) []byte { return frame(words(n, 0, 7, -102)) }), ofB, "hidden", true},
		"there and not there": {func(c net.Conn, n, op int, path string) bool {
			return path == ofB && op != opExists && len(must(c.Write(frame(words(n, 0, 7, -101))))) > 0
		}, ofB, "answer", true},
		"too many": {
			children(append(repeat(5000, func(i int) string { return at(fmt.Sprintf("10.1.%d.%d", i>>8, i&255), "&disabled=true") }), first)...),
			ofB, "limit", true,
		},
		"too many that are none": {children(append(repeat(5000, func(i int) string { return fmt.Sprintf("no-url-%d", i) }), first)...), ofB, "limit", true},
		"one again and again":    {children(repeat(5000, func(int) string { return first })...), ofB, "", true},
		"odd names": {
			children(first, "", ".", "..", "a/b", "../../x", "a\x00b", "\x1b[2J", "\xff\xfe", "%ff%fe", "%", at("10.0.0.2", "&disabled=true&k=\x1b%1b")),
			ofB, "name-of-node", true,
		},
		"a deep value":          {value(strings.Repeat(`{"payload":`, 5_000)), ofApp + "/i1", "", true},
		"a value of null":       {value(`null`), ofApp + "/i1", "", true},
		"a value of other type": {value(`{"address": 7, "port": "x", "payload": []}`), ofApp + "/i1", "", true},
		"a large value":         {value(strings.Repeat("x", 900<<10)), ofApp + "/i1", "", true},
		"a value out of bounds": {value(strings.Repeat("x", 2<<20)), ofApp + "/i1", "answer", true},
		"a path for a revision": {
			value(`{"address": "10.0.1.1", "port": 80, "payload": {"metadata": {"dubbo.metadata.revision": ".."}}}`),
			ofApp + "/i1", "metadata", true,
		},
		"odd bytes for one": {
			value(`{"address": "10.0.1.1", "port": 80, "payload": {"metadata": {"dubbo.metadata.revision": "\u0000/../\u001b"}}}`),
			ofApp + "/i1", "metadata", true,
		},
		"transactions go back": {of(ofB, func(n int) []byte { return frame(words(n, -1, -1-n, 0, 1, first, make([]byte, statBytes))) }), ofB, "", true},
		"of another form":      {of(ofB, func(n int) []byte { return frame(words(n, 0, 7, 0, 1<<30, "a")) }), ofB, "", false},
		"no answer":            {of(ofB, func(int) []byte { return nil }), ofB, "", false},
		"half an answer":       {of(ofB, func(n int) []byte { return words(1000, n, 0) }), ofB, "", false},
		"a long one, drop by drop": {func(c net.Conn, n, op int, path string) bool {
			if path == ofB {
				slowly(c, words(1<<29, n, 0, 7, 0))
			}
			return path == ofB
		}, ofB, "", false},
		"it hangs up": {func(c net.Conn, _, _ int, path string) bool { return path == ofB && c.Close() == nil }, ofB, "", false},
		"events without end": {of(ofB, func(n int) []byte {
			var all []byte
			for i := range 1000 {
				all = append(all, frame(words(-1, 0, 7, 0, 4, 3, fmt.Sprint("/", i, strings.Repeat("x", 20_000))))...)
			}
			return append(all, frame(listing(n, first))...)
		}), ofB, "", false},
		"an event too large": {of(ofB, func(int) []byte { return frame(words(-1, 0, 7, 0, 4, 3, strings.Repeat("x", 100_000))) }), ofB, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLiar(t, mesh)
			h := w.follows(t)
			before := w.was(tt.about)
			w.change(func() { w.lie = tt.lie; w.tell(tt.about) })
			registrytest.Keeps(t, h, func() bool { return w.was(tt.about) >= before+3 }, "a.b.dubbo", "10.0.0.1")
			registrytest.Has(t, h, "app.dubbo-application", "10.0.1.1", "10.0.1.2")
			if tt.says != "" {
				h.WaitRows("faults", func(rows map[string]*sdk.Row) bool {
					for _, r := range rows {
						if strings.Contains(string(r.Payload), `"`+tt.says+`"`) {
							return true
						}
					}
					return false
				})
			}
			w.change(func() { // others go on
				delete(w.tree, ofD+"/"+url.QueryEscape("tri://10.0.0.9:1/c.D?interface=c.D"))
				w.tree[ofD+"/"+url.QueryEscape("tri://10.0.0.8:1/c.D?interface=c.D&disabled=true")] = ""
				w.tree[ofD+"/"+url.QueryEscape("tri://10.0.0.7:1/c.D?interface=c.D")] = ""
				w.tell(ofD)
			})
			h.WaitRows("endpoints", func(rows map[string]*sdk.Row) bool {
				return rows["default/c.d.dubbo/grpc-1/10.0.0.7:1"] != nil || tt.says == "limit"
			})
			for _, r := range h.Rows("faults") {
				if strings.ContainsAny(string(r.Payload), "\x00\x1b") || strings.Contains(string(r.Payload), `\u001b`) {
					t.Errorf("%q is shown", r.Payload)
				}
			}
			w.mu.Lock()
			if tt.alone && w.sessions != 1 {
				t.Errorf("there were %d sessions", w.sessions)
			}
			w.mu.Unlock()
			w.change(func() {
				w.lie = nil
				w.tree[ofB+"/"+at("10.0.0.3", "")] = ""
				w.tell(ofB)
			})
			registrytest.Has(t, h, "a.b.dubbo", "10.0.0.1", "10.0.0.3")
		})
	}
}

func must(n int, err error) []int { return make([]int, max(n, 0)) }

// TestLiarGreets: a server whose session can't be lived in is no server.
func TestLiarGreets(t *testing.T) {
	for name, greets := range map[string][]byte{
		"no time": hello(0), "too much time": hello(1 << 30), "nothing": {},
		"garbage": []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), "without end": words(1<<31-1, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newLiar(t, mesh)
			h := w.follows(t)
			w.change(func() { w.greets = greets; w.hangUp() })
			sessions := func() int { w.mu.Lock(); defer w.mu.Unlock(); return w.sessions }
			registrytest.Keeps(t, h, func() bool { return sessions() >= 4 }, "a.b.dubbo", "10.0.0.1")
			w.change(func() {
				w.greets = hello(1000)
				w.tree[ofB+"/"+at("10.0.0.3", "")] = ""
				w.hangUp()
			})
			registrytest.Has(t, h, "a.b.dubbo", "10.0.0.1", "10.0.0.3")
		})
	}
}
