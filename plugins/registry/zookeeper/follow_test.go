package zookeeper

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// origin is when sessions of tests begin.
var origin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type clock func() time.Time

func fixed(at time.Time) clock { return func() time.Time { return at } }

// world is a follower over a tree.
type world struct {
	*follower
	tree  tree
	table *table
	now   time.Time
}

func newWorld(t *testing.T, config, text string) *world {
	t.Helper()
	p := newTable()
	c := configured(t, config)
	w := &world{newFollower(c, newBook(c, p)), readTree(text), p, origin}
	w.begin(w.now)
	return w
}

// endpoints walks, and returns the addresses that are published of a host.
func (w *world) endpoints(t *testing.T, host string) string {
	t.Helper()
	w.tree.walk(w.follower, fixed(w.now))
	published(t, w.book, w.table)
	var all []string
	for _, key := range sortedKeys(w.table.rows[state.Endpoints]) {
		if rest, ok := strings.CutPrefix(key, "default/"+host+"/"); ok {
			_, address, _ := strings.Cut(rest, "/")
			all = append(all, strings.Split(address, ":")[0])
		}
	}
	return strings.Join(all, " ")
}

func provider(address string) string {
	for at := range readTree("/dubbo/a.B/providers/tri://" + address + ":1/a.B?interface=a.B") {
		return at
	}
	return ""
}

// TestSettle: what went between two sessions stays until settle has passed, what goes in a session
// goes at once.
func TestSettle(t *testing.T) {
	w := newWorld(t, `{}`, "")
	w.tree[provider("10.0.0.1")], w.tree[provider("10.0.0.2")], w.tree[provider("10.0.0.3")] = "", "", ""
	is := func(what, want string) {
		t.Helper()
		if got := w.endpoints(t, "a.b.dubbo"); got != want {
			t.Errorf("%s: %q, not %q", what, got, want)
		}
	}
	is("the first list", "10.0.0.1 10.0.0.2 10.0.0.3")
	delete(w.tree, provider("10.0.0.3"))
	w.changed("/dubbo/a.B/providers")
	is("one goes in the first session", "10.0.0.1 10.0.0.2")

	w.now = w.now.Add(time.Hour)
	delete(w.tree, provider("10.0.0.1"))
	w.tree[provider("10.0.0.4")] = ""
	w.begin(w.now)
	is("one went and one came between two sessions", "10.0.0.1 10.0.0.2 10.0.0.4")
	if faults := published(t, w.book, w.table); !strings.Contains(faults, "gone: 1 (tri://10.0.0.1:1/a.B)") {
		t.Errorf("it isn't shown:\n%s", faults)
	}
	delete(w.tree, provider("10.0.0.4"))
	w.changed("/dubbo/a.B/providers")
	is("one that came goes", "10.0.0.1 10.0.0.2")
	if at := w.alarm(); !at.Equal(w.now.Add(30 * time.Second)) {
		t.Errorf("it is looked at again at %v", at)
	}
	w.now = w.now.Add(31 * time.Second)
	w.rings(w.now)
	is("settle has passed", "10.0.0.2")
	if faults := published(t, w.book, w.table); strings.Contains(faults, "gone:") {
		t.Errorf("it is still shown:\n%s", faults)
	}
}

// TestRootIsGone: a ZooKeeper without the root that it had takes nothing away, however long that
// is.
func TestRootIsGone(t *testing.T) {
	w := newWorld(t, `{}`, "")
	w.tree[provider("10.0.0.1")], w.tree[provider("10.0.0.2")] = "", ""
	w.endpoints(t, "a.b.dubbo")
	before := w.tree
	w.tree, w.now = tree{}, w.now.Add(time.Hour)
	w.begin(w.now)
	w.now = w.now.Add(time.Hour)
	w.rings(w.now)
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.1 10.0.0.2" {
		t.Errorf("the root is gone: %q", got)
	}
	if faults := published(t, w.book, w.table); !strings.Contains(faults, "/dubbo root: 1") {
		t.Errorf("it isn't shown:\n%s", faults)
	}
	w.tree = tree{"/dubbo/a.Other/providers/x": ""}
	w.changed("/dubbo")
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.1 10.0.0.2" {
		t.Errorf("the root is there again, with others: %q", got)
	}
	w.tree = before
	w.changed("/dubbo")
	w.changed("/dubbo/a.B/providers")
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.1 10.0.0.2" {
		t.Errorf("all is as before: %q", got)
	}
}

// TestRefused: what may not be read any more stays; without the roots there is no first list.
func TestRefused(t *testing.T) {
	w := newWorld(t, `{}`, "")
	w.tree[provider("10.0.0.1")] = ""
	refuse := func(path string) {
		if err := w.handle(found{target: target{path: path}, err: zk.ErrNoAuth}, w.now); err != nil {
			t.Fatal(err)
		}
	}
	refuse("/dubbo")
	if w.synced() || len(w.refused) != 1 {
		t.Error("synced without a root")
	}
	w.rings(w.now.Add(time.Minute))
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.1" || !w.synced() || len(w.refused) != 0 {
		t.Errorf("the root may be read now: %q %v", got, w.refused)
	}
	refuse("/dubbo/a.B/providers")
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.1" || !w.synced() {
		t.Errorf("what may not be read any more: %q", got)
	}
	if faults := published(t, w.book, w.table); !strings.Contains(faults, "/dubbo/a.B/providers hidden: 1") {
		t.Errorf("it isn't shown:\n%s", faults)
	}
	w.rings(w.now.Add(time.Minute))
	w.endpoints(t, "a.b.dubbo")
	if faults := published(t, w.book, w.table); strings.Contains(faults, "hidden") {
		t.Errorf("it is still shown:\n%s", faults)
	}
}

// TestLimits: what is beyond them is left out and counted, and comes when there is room.
func TestLimits(t *testing.T) {
	w := newWorld(t, `{"limits": {"instances": 2, "services": 1}}`, "/dubbo/b.C/providers/x")
	for _, address := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		w.tree[provider(address)] = ""
	}
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.1 10.0.0.2" {
		t.Errorf("%q", got)
	}
	faults := published(t, w.book, w.table)
	for _, want := range []string{"/dubbo limit: 1", "/dubbo/a.B/providers limit: 1"} {
		if !strings.Contains(faults, want) {
			t.Errorf("%q isn't shown:\n%s", want, faults)
		}
	}
	delete(w.tree, provider("10.0.0.1"))
	w.changed("/dubbo/a.B/providers")
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.2 10.0.0.3" {
		t.Errorf("there is room: %q", got)
	}
}

// TestRevisions: an instance that is of a new revision keeps what it served until it is known what
// that is.
func TestRevisions(t *testing.T) {
	instance := func(revision string) string {
		return `{"name": "app", "address": "10.0.0.1", "port": 1, "payload": {"metadata": {"dubbo.endpoints": ` +
			`"[{\"port\":1,\"protocol\":\"tri\"}]", "dubbo.metadata.revision": "` + revision + `"}}}`
	}
	serves := `{"services": {"a.B:tri": {"name": "a.B", "protocol": "tri"}}}`
	w := newWorld(t, `{}`, "")
	w.tree["/services/app/1"], w.tree["/dubbo/metadata/app/r1"] = instance("r1"), serves
	is := func(what, want string) {
		t.Helper()
		if got := w.endpoints(t, "a.b.dubbo"); got != want {
			t.Errorf("%s: %q, not %q", what, got, want)
		}
	}
	is("the first list", "10.0.0.1")
	w.tree["/services/app/1"], w.tree["/dubbo/metadata/app/r2"] = instance("r2"), serves
	if err := w.handle(found{target: target{"/services/app/1", true}, data: []byte(instance("r2"))}, w.now); err != nil {
		t.Fatal(err)
	}
	published(t, w.book, w.table)
	if n := len(w.table.rows[state.Endpoints]); n != 2 {
		t.Errorf("%d endpoints while the new revision isn't known", n)
	}
	is("it is known", "10.0.0.1")
	if w.nodes[target{"/dubbo/metadata/app/r1", true}] != nil {
		t.Error("the old revision is still followed")
	}
	delete(w.tree, "/dubbo/metadata/app/r2")
	w.changed("/dubbo/metadata/app/r2")
	is("what says it is gone", "10.0.0.1")
	w.tree["/services/app/1"] = instance("r3")
	w.changed("/services/app/1")
	is("nothing says what the newest serves", "")
	if got := w.endpoints(t, "app.dubbo-application"); got != "10.0.0.1" {
		t.Errorf("by application: %q", got)
	}
	w.tree["/dubbo/metadata/app/r3"] = serves
	w.changed("/dubbo/metadata/app/r3")
	is("it is said later", "10.0.0.1")
	delete(w.tree, "/services/app/1")
	w.changed("/services/app")
	is("it is gone", "")
	if len(w.book.waiting)+len(w.book.served)+len(w.book.sources)+len(w.book.hosts) != 0 {
		t.Errorf("something is left: %v %v", w.book.waiting, w.book.served)
	}
}

// TestRefresh: what is read once more counts if it is otherwise, and is watched again then;
// otherwise nothing is done.
func TestRefresh(t *testing.T) {
	w := newWorld(t, `{}`, "")
	w.tree[provider("10.0.0.1")] = ""
	w.endpoints(t, "a.b.dubbo")
	w.tree[provider("10.0.0.2")] = "" // nobody tells
	w.refresh()
	list := target{path: "/dubbo/a.B/providers"}
	for {
		next, ok := w.next()
		if !ok {
			break
		}
		e := w.job(next)
		if !e.plain && next != list {
			t.Errorf("%v is to be watched once more", next)
		}
		w.starts(e, w.now)
		r := found{target: next, number: e.number, plain: e.plain, children: w.tree.children(next.path)}
		r.missing = len(r.children) == 0
		if err := w.handle(r, w.now); err != nil {
			t.Fatal(err)
		}
		if next == list && e.plain && !w.nodes[list].queued {
			t.Error("a list whose watch is lost is not watched again")
		}
	}
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.1 10.0.0.2" {
		t.Errorf("%q", got)
	}
	w.changed(list.path)
	w.refresh()
	if w.job(list).plain {
		t.Error("what has changed is to be read with a watch")
	}
}

// TestOneReadAtOnce: a target that changes while it is being read is read again after that, never
// beside it: of two answers the older one might come last, and be taken for what is there.
func TestOneReadAtOnce(t *testing.T) {
	w := newWorld(t, `{}`, "")
	w.tree[provider("10.0.0.1")] = ""
	w.endpoints(t, "a.b.dubbo")
	list := target{path: "/dubbo/a.B/providers"}
	read := func() readJob {
		t.Helper()
		next, ok := w.next()
		if !ok || next != list {
			t.Fatalf("%v is to be read, not the list", next)
		}
		e := w.job(next)
		w.starts(e, w.now)
		return e
	}
	answer := func(e readJob) found {
		return found{target: list, number: e.number, children: w.tree.children(list.path)}
	}
	w.changed(list.path)
	e := read()
	old := answer(e)
	w.tree[provider("10.0.0.2")] = ""
	w.changed(list.path)
	w.refresh()
	for next, ok := w.next(); ok; next, ok = w.next() {
		if next == list {
			t.Fatal("it is to be read a second time at once")
		}
		w.starts(w.job(next), w.now)
	}
	if err := w.handle(old, w.now); err != nil {
		t.Fatal(err)
	}
	if e = read(); e.plain {
		t.Error("what has changed is to be read with a watch")
	}
	if err := w.handle(answer(e), w.now); err != nil {
		t.Fatal(err)
	}
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.1 10.0.0.2" {
		t.Errorf("%q", got)
	}

	// one that goes and comes while it is read is another one
	w.changed(list.path)
	old = answer(read())
	w.unwant(list)
	w.want(list, providers, "a.B")
	w.tree[provider("10.0.0.3")] = ""
	e = read()
	newer := answer(e)
	for _, r := range []found{newer, old} {
		if err := w.handle(r, w.now); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.endpoints(t, "a.b.dubbo"); got != "10.0.0.1 10.0.0.2 10.0.0.3" {
		t.Errorf("an answer of before was taken: %q", got)
	}
}
