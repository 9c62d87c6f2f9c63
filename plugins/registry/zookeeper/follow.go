package zookeeper

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
)

// follower says what is read and when, and gives the book what was found. It has no clock and
// starts nothing.
type follower struct {
	config *Config
	book   *book
	nodes  map[target]*node
	// queue is to be read; unread was never read, and the first list is not in without it.
	queue  []target
	unread map[target]bool
	// later is to be read again at a time.
	later map[target]time.Time
	// session is the number of the present one, which began at a time.
	session int
	began   time.Time
	// reads are so many as were started, and reading are those that are out, since when.
	reads   int
	reading map[int]time.Time
	// starved are lists some of whose children are beyond limits.instances.
	starved map[target]bool
	// refused are roots that were never read, and why.
	refused map[target]error
}

// node is a target that is followed.
type node struct {
	what   what
	name   string // of the interface or application
	queued bool
	// read is the number of the read that is out, 0: none is. There is never a second one: answers
	// may overtake each other, and the older one would be taken for what is there. again: it is to
	// be read once more after that.
	read  int
	again bool
	// seen are children, with the session in which they were seen last.
	seen map[string]int
	// gone: it is a root that is not there, although it was.
	gone bool
	// plain: it is to be read without being watched once more. sum is of what was read last.
	plain bool
	sum   uint64
}

// what a node is.
type what int

const (
	interfaces what = iota
	applications
	configuration
	providers
	configurators
	routers
	members
	oneInstance
	revision
)

func newFollower(c *Config, b *book) *follower {
	f := &follower{
		config: c, book: b, nodes: map[target]*node{}, unread: map[target]bool{}, later: map[target]time.Time{},
		starved: map[target]bool{}, refused: map[target]error{}, reading: map[int]time.Time{},
	}
	for what, root := range map[what]string{interfaces: c.Roots.Interfaces, applications: c.Roots.Applications, configuration: c.Roots.Rules} {
		if root != "" {
			f.want(target{path: root}, what, "")
		}
	}
	return f
}

// want follows a target from now on.
func (f *follower) want(t target, what what, name string) {
	if f.nodes[t] != nil {
		return
	}
	f.nodes[t] = &node{what: what, name: name, seen: map[string]int{}}
	if what != configuration {
		f.unread[t] = true
	}
	f.enqueue(t)
}

func (f *follower) unwant(t target) {
	delete(f.nodes, t)
	delete(f.unread, t)
	delete(f.later, t)
	delete(f.starved, t)
}

// enqueue has a target read, and watched.
func (f *follower) enqueue(t target) {
	n := f.nodes[t]
	if n == nil {
		return
	}
	switch {
	case n.read != 0:
		n.again = true
	case n.queued:
		n.plain = false
	default:
		n.plain, n.queued = false, true
		f.queue = append(f.queue, t)
	}
}

// refresh has all be read once more, as it is watched: ZooKeeper loses a watch on what may not be
// read when it changes.
func (f *follower) refresh() {
	for t, n := range f.nodes {
		if _, waits := f.later[t]; !n.queued && n.read == 0 && !waits {
			n.queued, n.plain = true, true
			f.queue = append(f.queue, t)
		}
	}
}

// next takes a target that is to be read from the queue.
func (f *follower) next() (t target, ok bool) {
	for len(f.queue) > 0 {
		t = f.queue[0]
		if n := f.nodes[t]; n != nil && n.queued {
			return t, true
		}
		f.queue = f.queue[1:]
	}
	return t, false
}

// job is what a target that next named is to be read by.
func (f *follower) job(t target) readJob {
	n := f.nodes[t]
	return readJob{t, n != nil && n.plain, f.reads + 1}
}

// starts notes that a read is out. Its answer, which has its number, has to be given to handle,
// unless the session ends.
func (f *follower) starts(e readJob, now time.Time) {
	n := f.nodes[e.target]
	n.queued, n.read = false, e.number
	f.queue = f.queue[1:]
	f.reads = e.number
	f.reading[e.number] = now
}

// late reports whether the answer of a read is out that was started before a time.
func (f *follower) late(before time.Time) bool {
	for _, since := range f.reading {
		if since.Before(before) {
			return true
		}
	}
	return false
}

// busy reports whether there is more to come at once.
func (f *follower) busy() bool { return len(f.reading) > 0 || len(f.queue) > 0 }

// begin begins a session: all is read again.
func (f *follower) begin(now time.Time) {
	f.session++
	f.began = now
	clear(f.reading)
	clear(f.later)
	for _, n := range f.nodes { // answers of the session before don't come any more
		n.read, n.again = 0, false
	}
	for _, what := range []what{interfaces, applications, configuration, configurators, providers, members, routers, revision, oneInstance} {
		for t, n := range f.nodes {
			if n.what == what {
				f.enqueue(t)
			}
		}
	}
}

// changed notes that ZooKeeper has told of a change at a path.
func (f *follower) changed(path string) {
	f.enqueue(target{path: path})
	f.enqueue(target{path: path, value: true})
}

// alarm is when a target is to be read again; zero: never.
func (f *follower) alarm() (at time.Time) {
	for _, when := range f.later {
		if at.IsZero() || when.Before(at) {
			at = when
		}
	}
	return at
}

// rings has those targets read whose time has come.
func (f *follower) rings(now time.Time) {
	for t, when := range f.later {
		if !when.After(now) {
			delete(f.later, t)
			f.enqueue(t)
		}
	}
}

// synced reports whether the first list is in.
func (f *follower) synced() bool { return len(f.unread) == 0 }

// handle takes what was read. An error ends the session.
func (f *follower) handle(r found, now time.Time) error {
	delete(f.reading, r.number)
	n := f.nodes[r.target]
	if n == nil || n.read != r.number { // nobody wants to know any more, or not of this one
		return nil
	}
	if n.read = 0; n.again {
		n.again = false
		f.enqueue(r.target)
	}
	switch {
	case refused(r.err):
		f.refuse(r, n, now)
		return nil
	case r.err != nil:
		return r.err
	}
	sum := r.sum()
	if r.plain && sum == n.sum {
		return nil
	}
	same := n.sum == sum && !f.unread[r.target]
	if n.sum = sum; r.plain {
		f.enqueue(r.target) // its watch is lost
	}
	delete(f.unread, r.target)
	f.book.note(shown(r.path), lostHidden, 0, "")
	f.book.note(shown(r.path), lostAnswer, 0, "")
	delete(f.refused, r.target)
	if same && (n.what == oneInstance || n.what == revision) {
		return nil // as after a new session
	}
	switch n.what {
	case oneInstance:
		if !r.missing { // the list says that it is gone
			f.instance(r.target, n, r.data)
		}
	case revision:
		f.book.serves(r.path, valueOf(r))
	case configuration:
		f.rules(r.path, r.children, lostRule, isRule)
	case routers:
		f.rules(r.path, r.children, lostRule, func(string) bool { return true })
	default:
		f.list(r, n, now)
	}
	return nil
}

// refuse notes that a target may not, or can't, be read. What was read of it stays; nothing tells
// of a change of rights, so that it is tried again.
func (f *follower) refuse(r found, n *node, now time.Time) {
	f.later[r.target], n.sum = now.Add(f.config.MaxRetry), 0
	why := lostAnswer
	if errors.Is(r.err, zk.ErrNoAuth) {
		why = lostHidden
	}
	f.book.note(shown(r.path), why, 1, r.path)
	if f.unread[r.target] && n.what <= applications {
		f.refused[r.target] = r.err
		return
	}
	delete(f.unread, r.target)
	if n.what == revision {
		f.book.serves(r.path, nil)
	}
}

// sum tells apart what was read.
func (r found) sum() uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, r.missing, len(r.children), " ")
	_, _ = h.Write(r.data)
	for _, child := range slices.Sorted(slices.Values(r.children)) {
		_, _ = io.WriteString(h, child+"\n")
	}
	return h.Sum64()
}

func valueOf(r found) []byte {
	if r.missing {
		return nil
	}
	return slices.Concat([]byte{}, r.data) // not nil
}

// list takes a list of children: what is new comes at once. What is not there any more goes at once
// if it was there in this session. Otherwise it may be that those who registered it have lost their
// sessions, too, and are about to come back: it stays until settle has passed.
func (f *follower) list(r found, n *node, now time.Time) {
	if n.what <= applications && f.vanished(r, n, now) {
		return
	}
	there := map[string]bool{}
	children := f.counts(f.named(r), n)
	for _, child := range children {
		there[child] = true
	}
	kept, example := 0, ""
	for _, child := range sortedKeys(n.seen) {
		at := f.began.Add(f.config.Settle)
		if f.goneAbove(r.path) {
			at = now.Add(f.config.MaxRetry)
		}
		switch {
		case there[child]:
		case n.seen[child] != f.session && f.session > 1 && now.Before(at):
			f.later[r.target] = at
			kept, example = kept+1, child
		default:
			delete(n.seen, child)
			f.child(r.path, child, n, false)
		}
	}
	f.book.note(shown(r.path), lostGone, kept, shown(example))
	left := 0
	for _, child := range children {
		if _, known := n.seen[child]; !known && f.limits(n) {
			left++
			continue
		}
		n.seen[child] = f.session
		f.child(r.path, child, n, true)
	}
	f.book.note(shown(r.path), lostLimit, left, r.path)
	if delete(f.starved, r.target); left > 0 && (n.what == providers || n.what == members) {
		f.starved[r.target] = true
	}
}

// vanished reports whether a root is not there any more, although it was: it is another ZooKeeper,
// or one that has lost its disk. All stays. When it is there again, it is as if a session began.
func (f *follower) vanished(r found, n *node, now time.Time) bool {
	was := n.gone
	n.gone = r.missing && len(n.seen) > 0
	lost := 0
	if n.gone {
		lost = 1
	}
	f.book.note(shown(r.path), lostRoot, lost, r.path)
	if was && !n.gone {
		f.session++
		f.began = now
	}
	return n.gone
}

// goneAbove reports whether a path is below a root that is not there any more.
func (f *follower) goneAbove(path string) bool {
	for _, root := range []string{f.config.Roots.Interfaces, f.config.Roots.Applications} {
		if n := f.nodes[target{path: root}]; n != nil && n.gone && strings.HasPrefix(path, root+"/") {
			return true
		}
	}
	return false
}

// named are the children that have a name. Source: ZooKeeper, "Data model", unicode characters that
// a path may not have.
func (f *follower) named(r found) (all []string) {
	odd, example := 0, ""
	for _, child := range r.children {
		if child == "" || child == "." || child == ".." || strings.Contains(child, "/") || !utf8.ValidString(child) ||
			strings.ContainsFunc(child, unicode.IsControl) {
			odd, example = odd+1, child
			continue
		}
		all = append(all, child)
	}
	f.book.note(shown(r.path), lostName, odd, clip(example))
	return all
}

// counts are the children that count, in order.
func (f *follower) counts(children []string, n *node) (all []string) {
	for _, child := range children {
		name, err := url.QueryUnescape(child)
		switch {
		case n.what == interfaces &&
			(err != nil || slices.Contains(notInterfaces, name) || !f.config.Interfaces.Select(name)):
		case n.what == applications && !f.config.Applications.Select(child):
		default:
			all = append(all, child)
		}
	}
	slices.Sort(all)
	return all
}

// notInterfaces stand beside interfaces below the root.
var notInterfaces = []string{"config", "mapping", "metadata"}

// limits reports whether no more children may come.
func (f *follower) limits(n *node) bool {
	switch n.what {
	case interfaces, applications:
		return len(n.seen) >= f.config.Limits.Services
	case providers, members:
		return f.book.full()
	}
	return len(n.seen) >= f.config.Limits.Services || f.book.full()
}

// child follows a child of a list, or ends that.
func (f *follower) child(parent, child string, n *node, there bool) {
	at := parent + "/" + child
	switch n.what {
	case interfaces:
		name, _ := url.QueryUnescape(child)
		for what, below := range map[what]string{providers: "providers", configurators: "configurators", routers: "routers"} {
			f.follow(target{path: at + "/" + below}, what, name, there)
		}
	case applications:
		f.follow(target{path: at}, members, child, there)
	case members:
		f.follow(target{path: at, value: true}, oneInstance, n.name, there)
	case configurators:
		f.book.override(at, n.name, there)
	case providers:
		if there {
			f.book.provider(at)
		} else {
			f.drop(at)
		}
	}
}

// follow follows a target, or ends that, and takes what is known of it away.
func (f *follower) follow(t target, what what, name string, there bool) {
	if there {
		f.want(t, what, name)
		return
	}
	n := f.nodes[t]
	f.unwant(t)
	if n == nil {
		return
	}
	for _, r := range []instances.Reason{lostHidden, lostAnswer, lostName, lostGone, lostLimit, lostRule} {
		f.book.note(shown(t.path), r, 0, "")
	}
	if n.what == oneInstance {
		f.drop(t.path)
		return
	}
	for _, child := range sortedKeys(n.seen) {
		f.child(t.path, child, n, false)
	}
}

// drop takes a provider or an instance away. If there was no room for others, there is now.
func (f *follower) drop(at string) {
	need := ""
	if s := f.book.sources[at]; s != nil {
		need = f.book.need(s)
	}
	f.book.drop(at)
	f.unneeded(need)
	for t := range f.starved {
		f.enqueue(t)
	}
}

// instance takes an instance's value, and follows what says what it serves.
func (f *follower) instance(t target, n *node, value []byte) {
	before := ""
	if s := f.book.sources[t.path]; s != nil {
		before = f.book.need(s)
	}
	f.book.value(t.path, n.name, value)
	if s := f.book.sources[t.path]; s != nil {
		if need := f.book.need(s); need != "" {
			f.want(target{path: need, value: true}, revision, n.name)
		}
	}
	f.unneeded(before)
}

// unneeded ends the following of a revision that nobody has any more.
func (f *follower) unneeded(need string) {
	if need != "" && f.book.waiting[need] == nil {
		f.unwant(target{path: need, value: true})
	}
}

// rules counts nodes that are rules for Dubbo's consumers.
func (f *follower) rules(at string, children []string, r instances.Reason, is func(string) bool) {
	count, example := 0, ""
	for _, child := range children {
		if is(child) {
			count, example = count+1, shown(child)
		}
	}
	f.book.note(shown(at), r, count, example)
}

// isRule reports whether a node of the configuration center is a rule.
// Source: Dubbo, "Configuration center", rules.
func isRule(name string) bool {
	for _, end := range []string{".configurators", ".tag-router", ".condition-router", ".script-router", ".affinity-router", ".MESHAPPRULE"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// escapePath keeps a name one part of a path, of its own.
func escapePath(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return strings.ReplaceAll(name, "/", "%2F")
}

// shown is a path for people: a URL in it as it is, without user and parameters.
func shown(at string) string {
	dir, base := path.Split(at)
	if !strings.Contains(base, "%3A%2F%2F") {
		return clip(at)
	}
	text, err := url.QueryUnescape(base)
	if err != nil {
		return clip(dir + "…")
	}
	text, _, _ = strings.Cut(text, "?")
	protocol, rest, _ := strings.Cut(text, "://")
	return clip(dir + protocol + "://" + rest[strings.LastIndexByte(rest, '@')+1:])
}

// hint says what to do.
func hint(err error) string {
	if errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrAuthFailed) {
		return "; username and password have to be those of a user that may read the roots"
	}
	return ""
}
