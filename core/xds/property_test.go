package xds

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	rpc "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// client is a model of a client that does what it is told, as Envoy does: it asks for the endpoints
// of each cluster that it gets, before it acknowledges the cluster. Requests and responses travel
// in order, but arbitrarily late.
type client struct {
	*conversation
	random  *rand.Rand
	delta   bool
	refuse  bool   // sometimes
	poison  string // the content for which it refuses a response
	spoiled int    // responses that it refused for it
	tells   bool   // by the names of what has it
	refused bool   // at some time: then nothing can be said about routes
	names   map[string]map[string]bool
	has     map[string]map[string]string
	nonce   map[string]string
	inbox   []*response
	outbox  []func() effects
	broken  string // a rule that the server broke
	trace   []string
	waits   bool // a turn was taken for endpoints alone
}

func newClient(t *testing.T, random *rand.Rand, delta bool) *client {
	c := &client{
		conversation: newConversation(t, 500*time.Millisecond), random: random, delta: delta,
		names: map[string]map[string]bool{}, has: map[string]map[string]string{}, nonce: map[string]string{},
	}
	c.machine.delta = delta
	return c
}

// wildcards are the types that the model wants all of.
func wildcard(typeURL string) bool { return typeURL == cds || typeURL == lds }

// request sends a request; plus and minus are what changes in the names.
func (c *client) request(typeURL string, plus, minus []string, nonce string, detail *rpc.Status) {
	c.note("asks %s +%v -%v nonce %q refused %v", short(typeURL), plus, minus, nonce, detail != nil)
	all := c.names[typeURL]
	for _, n := range plus {
		all[n] = true
	}
	for _, n := range minus {
		delete(all, n)
		delete(c.has[typeURL], n)
	}
	if c.delta {
		r := &discovery.DeltaDiscoveryRequest{
			TypeUrl: typeURL, ResourceNamesSubscribe: plus, ResourceNamesUnsubscribe: minus, ResponseNonce: nonce,
			ErrorDetail: detail,
		}
		c.outbox = append(c.outbox, func() effects {
			c.machine.now = c.now
			return c.machine.deltaRequest(r)
		})
		return
	}
	r := &discovery.DiscoveryRequest{TypeUrl: typeURL, ResourceNames: slices.Sorted(maps.Keys(all)), ResponseNonce: c.nonce[typeURL], ErrorDetail: detail}
	c.outbox = append(c.outbox, func() effects {
		c.machine.now = c.now
		return c.machine.sotw(r)
	})
}

func (c *client) note(format string, args ...any) {
	c.trace = append(c.trace, fmt.Sprintf(format, args...))
}

// change makes a new revision.
func (c *client) change(edit func(map[string]map[string]string)) {
	c.source.change(edit)
	c.note("served %v", c.source.resources)
	if c.random.IntN(4) == 0 { // the turn for all of it comes later
		c.machine.now = c.now
		c.pending = append(c.pending, c.machine.ahead(c.connection.Pull())...)
		c.waits = true
	} else {
		c.serve()
	}
	for _, r := range c.pending {
		c.note("   sends %s", describe(r))
	}
}

// start subscribes to everything that it will ever subscribe to.
func (c *client) start(types ...string) {
	for _, typeURL := range types {
		c.names[typeURL], c.has[typeURL] = map[string]bool{}, map[string]string{}
		if wildcard(typeURL) {
			c.request(typeURL, nil, nil, "", nil)
		}
	}
}

// receive takes the next response.
func (c *client) receive() {
	r := c.inbox[0]
	c.inbox = c.inbox[1:]
	c.nonce[r.typeURL] = r.nonce
	c.note("gets %s nonce %s", describe(r), r.nonce)
	refused := c.refuse && c.random.IntN(4) == 0
	if c.poison != "" && slices.Contains(slices.Collect(maps.Values(decode(r))), c.poison) {
		refused = true
		c.spoiled++
	}
	c.refused = c.refused || refused
	c.take(r, refused)
	if r.typeURL == cds {
		c.followClusters()
	}
	c.checkRoutes()
	var detail *rpc.Status
	if refused {
		detail = &rpc.Status{Message: "no"}
		if c.tells {
			for name, content := range decode(r) {
				if content == c.poison {
					detail.Message += ", " + name + ": it is bad"
				}
			}
		}
	}
	c.request(r.typeURL, nil, nil, r.nonce, detail)
}

// take applies a response; of a refused one an arbitrary part. There is nothing to refuse in a
// stand-in for what is absent.
func (c *client) take(r *response, refused bool) {
	has := c.has[r.typeURL]
	skip := func() bool { return refused && c.random.IntN(2) == 0 }
	got := decode(r)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if (wildcard(r.typeURL) || c.names[r.typeURL][name]) && (got[name] == "" || !skip()) {
			has[name] = got[name]
		}
	}
	for _, name := range r.removed {
		if !skip() {
			delete(has, name)
		}
	}
	if !c.delta && wildcard(r.typeURL) {
		for _, name := range slices.Sorted(maps.Keys(has)) {
			if _, ok := got[name]; !ok && !skip() {
				delete(has, name)
			}
		}
	}
}

// followClusters asks for the endpoints of the clusters that it has, and no others.
func (c *client) followClusters() {
	if c.names[eds] == nil {
		return
	}
	var plus, minus []string
	for _, n := range slices.Sorted(maps.Keys(c.has[cds])) {
		if !c.names[eds][n] {
			plus = append(plus, n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(c.names[eds])) {
		if _, ok := c.has[cds][n]; !ok {
			minus = append(minus, n)
		}
	}
	if len(plus)+len(minus) > 0 {
		c.request(eds, plus, minus, "", nil)
	}
}

// checkRoutes checks that routes lead to clusters that are there and have endpoints.
func (c *client) checkRoutes() {
	if c.refused || c.broken != "" {
		return
	}
	for route, cluster := range c.has[rds] {
		if cluster = strings.TrimRight(cluster, "'"); cluster == "" {
			continue
		}
		if _, ok := c.has[cds][cluster]; !ok {
			c.broken = fmt.Sprintf("route %s leads to %s, which isn't there: %v", route, cluster, c.has)
		} else if c.names[eds] != nil && c.has[eds][cluster] == "" {
			c.broken = fmt.Sprintf("route %s leads to %s, which has no endpoints: %v", route, cluster, c.has)
		}
	}
}

// step lets one thing happen on the way. It returns false if there is nothing under way.
func (c *client) step() bool {
	if c.waits && c.random.IntN(4) == 0 {
		c.turn()
	}
	c.inbox = append(c.inbox, c.pending...)
	c.pending = nil
	switch {
	case len(c.outbox) > 0 && (len(c.inbox) == 0 || c.random.IntN(2) == 0):
		f := c.outbox[0]
		c.outbox = c.outbox[1:]
		e := f()
		c.note("   the server hears of it: %s", e.text())
		c.apply(e)
		for _, r := range c.pending {
			c.note("   sends %s", describe(r))
		}
	case len(c.inbox) > 0:
		c.receive()
	default:
		return false
	}
	return true
}

// turn takes the turn that was put off.
func (c *client) turn() {
	c.waits = false
	c.serve()
	c.note("its turn comes: %d responses", len(c.pending))
}

// settle lets everything arrive.
func (c *client) settle() {
	if c.waits {
		c.turn()
	}
	for {
		for c.step() || len(c.pending) > 0 {
		}
		if c.alarm.IsZero() {
			return
		}
		c.now = c.alarm
		c.note("patience ends")
		c.serve()
	}
}

// want returns what the client should have of a type.
func (c *client) want(typeURL string) map[string]string {
	out := map[string]string{}
	for n, content := range c.source.resources[typeURL] {
		if wildcard(typeURL) || c.names[typeURL][n] {
			out[n] = content
		}
	}
	for n := range c.names[typeURL] {
		if _, ok := out[n]; !ok && c.machine.find(typeURL).traits.EmptyWhenAbsent {
			out[n] = ""
		}
	}
	return out
}

func (c *client) check(seed uint64, when string, types ...string) {
	c.t.Helper()
	if c.broken != "" {
		c.t.Fatalf("seed %d, %s: %s\n%s", seed, when, c.broken, strings.Join(c.trace, "\n"))
	}
	for _, typeURL := range types {
		if want := c.want(typeURL); !maps.Equal(want, c.has[typeURL]) {
			c.t.Fatalf("seed %d, %s: %s: the client has %v, not %v\n%s", seed, when, typeURL, c.has[typeURL], want, strings.Join(c.trace, "\n"))
		}
	}
}

// world is what a source may serve: routes lead to clusters that exist, clusters have endpoints.
func world(random *rand.Rand, r map[string]map[string]string) {
	clusters, endpoints, routes, listeners := map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
	for i := range 4 {
		if n := fmt.Sprintf("c%d", i); random.IntN(3) > 0 {
			clusters[n], endpoints[n] = fmt.Sprint(random.IntN(2)), fmt.Sprint(1+random.IntN(2))
		}
	}
	names := slices.Sorted(maps.Keys(clusters))
	for _, n := range []string{"80", "90", "99"} {
		if len(names) > 0 && random.IntN(4) > 0 {
			routes[n] = names[random.IntN(len(names))]
		}
		if random.IntN(2) > 0 {
			listeners["l"+n] = fmt.Sprint(random.IntN(2))
		}
	}
	r[cds], r[eds], r[rds] = clusters, endpoints, routes
	if random.IntN(4) > 0 {
		r[lds] = listeners
	}
}

// TestClientEndsWithTheSnapshot: over random histories of changes and subscriptions, with messages
// under way arbitrarily long, a client of either protocol ends with what is served, and no route
// ever leads to a cluster that it lacks or that has no endpoints.
func TestClientEndsWithTheSnapshot(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(protocolName(delta), func(t *testing.T) {
			for seed := range uint64(histories(t)) {
				history(t, seed, delta, false)
			}
		})
	}
}

// TestClientRecoversFromRefusals: the same for a client that refuses some responses and takes an
// arbitrary part of those: the next change of a type that is accepted makes up for all.
func TestClientRecoversFromRefusals(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(protocolName(delta), func(t *testing.T) {
			for seed := range uint64(histories(t)) {
				history(t, seed, delta, true)
			}
		})
	}
}

// TestPoisonGoesWithItsRevision: resources that a client refuses are in no response any more once
// they are gone from what is served, or better: the client refuses nothing then, and has what it
// should have, without a new stream.
func TestPoisonGoesWithItsRevision(t *testing.T) {
	for _, delta := range []bool{false, true} {
		t.Run(protocolName(delta), func(t *testing.T) {
			spoiled := 0
			for seed := range uint64(histories(t)) {
				random := rand.New(rand.NewPCG(seed, 2))
				c := newClient(t, random, delta)
				c.source.change(func(r map[string]map[string]string) { world(random, r) })
				types := []string{cds, eds, lds, rds}
				c.start(types...)
				c.poison, c.tells = "bad", seed%2 == 0
				c.settle()
				for range 1 + random.IntN(3) {
					c.change(func(r map[string]map[string]string) {
						world(random, r)
						for i := range 1 + random.IntN(2) {
							typeURL := []string{cds, lds}[random.IntN(2)]
							if r[typeURL] == nil {
								r[typeURL] = map[string]string{}
							}
							r[typeURL][[]string{"c0", "bad0", "bad1"}[random.IntN(2)+i]] = c.poison
						}
					})
					for range random.IntN(10) {
						c.step()
					}
				}
				c.settle()
				before := c.spoiled
				spoiled += before
				c.change(func(r map[string]map[string]string) {
					world(random, r)
					for _, typeURL := range types { // nothing is as it was
						for n := range r[typeURL] {
							r[typeURL][n] += "'"
						}
					}
				})
				c.settle()
				if c.spoiled > before {
					t.Fatalf("seed %d: what was bad came again\n%s", seed, strings.Join(c.trace, "\n"))
				}
				c.check(seed, "at the end", types...)
			}
			if spoiled < histories(t) {
				t.Errorf("%d responses were refused: too few to tell", spoiled)
			}
		})
	}
}

// TestWhatIsRefusedIsLeftOut: of what a client refuses, by name or not, the rest arrives at once,
// and later changes arrive without it; it is not sent again while it is the same.
func TestWhatIsRefusedIsLeftOut(t *testing.T) {
	for i := range 4 {
		delta, tells := i%2 == 0, i/2 == 0
		t.Run(fmt.Sprintf("%s, by name %v", protocolName(delta), tells), func(t *testing.T) {
			spoiled, pardoned := 0, 0
			n := histories(t) / 2
			for seed := range uint64(n) {
				random := rand.New(rand.NewPCG(seed, 3))
				c := newClient(t, random, delta)
				c.source.change(func(r map[string]map[string]string) { world(random, r) })
				types := []string{cds, eds, lds, rds}
				c.start(types...)
				c.request(rds, []string{"80", "90", "99"}, nil, "", nil)
				c.settle()
				c.poison, c.tells = "bad", tells
				bad := map[string]map[string]bool{cds: {}, lds: {}, rds: {}}
				for range 1 + random.IntN(2) {
					typeURL := []string{cds, lds, rds}[random.IntN(3)]
					bad[typeURL][map[string][]string{cds: {"c0", "bad0"}, lds: {"l80", "bad1"}, rds: {"80", "90"}}[typeURL][random.IntN(2)]] = true
				}
				spread := func(r map[string]map[string]string) {
					world(random, r)
					for typeURL, names := range bad {
						if r[typeURL] == nil {
							r[typeURL] = map[string]string{}
						}
						for n := range names {
							r[typeURL][n] = c.poison
						}
					}
				}
				right := func(when string) {
					t.Helper()
					c.settle()
					for _, typeURL := range types {
						want, has := c.want(typeURL), maps.Clone(c.has[typeURL])
						for n := range bad[typeURL] {
							delete(want, n)
							delete(has, n)
						}
						if !maps.Equal(want, has) {
							t.Fatalf("seed %d, %s: %s: the client has %v, not %v\n%s", seed, when, typeURL, has, want, strings.Join(c.trace, "\n"))
						}
					}
				}
				c.change(spread)
				right("refused")
				before := c.spoiled
				spoiled += before
				for range 1 + random.IntN(3) {
					c.change(spread)
					right("later")
				}
				if c.spoiled > before {
					t.Fatalf("seed %d: what was named came again\n%s", seed, strings.Join(c.trace, "\n"))
				}
				c.now = c.now.Add(2 * pardon)
				c.change(func(r map[string]map[string]string) {
					for typeURL, all := range r {
						for n := range all {
							if !bad[typeURL][n] {
								all[n] += "'"
							}
						}
						if all["more"] = "1"; typeURL == rds {
							delete(all, "more")
						}
					}
				})
				right("pardoned")
				pardoned += c.spoiled - before
			}
			if spoiled < n || pardoned < n/2 {
				t.Errorf("%d responses were refused, and %d once more: too few to tell", spoiled, pardoned)
			}
		})
	}
}

func TestMentions(t *testing.T) {
	for _, c := range []struct {
		text, name string
		want       bool
	}{
		{"Error adding/updating cluster(s) bad: invalid", "bad", true},
		{"bad", "bad", true},
		{"Error adding listener 'bad'.", "bad", true},
		{"cluster bad.", "bad", true},
		{"cluster bad.example: no", "bad", false},
		{"cluster my-bad", "bad", false},
		{"outbound|80||a.example: no", "outbound|80||a.example", true},
		{"outbound|80||a.example: no", "a.example", false},
		{"badly, but bad it is", "bad", true},
		{"no", "", false},
	} {
		if got := mentions(c.text, c.name); got != c.want {
			t.Errorf("%q in %q: %v", c.name, c.text, got)
		}
	}
}

func protocolName(delta bool) string {
	if delta {
		return "delta"
	}
	return "sotw"
}

// histories is how many are played; `make test-all` plays more.
func histories(t *testing.T) int {
	switch {
	case testing.Short():
		return 100
	case need.Long():
		return 1000
	}
	return 250
}

// history plays a random history and returns what happened.
func history(t *testing.T, seed uint64, delta, refuse bool) []string {
	random := rand.New(rand.NewPCG(seed, 1))
	c := newClient(t, random, delta)
	c.source.change(func(r map[string]map[string]string) { world(random, r) })
	types := []string{cds, eds, lds, rds}
	c.start(types...)
	c.refuse = refuse
	for i := range 1 + random.IntN(60) {
		switch random.IntN(8) {
		case 0:
			c.change(func(r map[string]map[string]string) { world(random, r) })
		case 1:
			name := []string{"80", "90", "99"}[random.IntN(3)]
			if c.names[rds][name] {
				c.request(rds, nil, []string{name}, "", nil)
			} else {
				c.request(rds, []string{name}, nil, "", nil)
			}
		case 2:
			c.settle()
			if !refuse {
				c.check(seed, fmt.Sprintf("at step %d", i), types...)
			}
		default:
			c.step()
		}
	}
	c.settle()
	if refuse {
		c.refuse = false
		c.now = c.now.Add(2 * pardon)
		c.change(c.touch)
		c.settle()
	}
	c.check(seed, "at the end", types...)
	return c.trace
}

// touch changes one resource of each type that the client wants, and leaves the rest as it is: what
// makes up for refusals must not need more.
func (c *client) touch(r map[string]map[string]string) {
	if len(r[cds]) == 0 {
		r[cds]["c0"], r[eds]["c0"] = "0", "1"
	}
	if len(r[lds]) == 0 {
		r[lds] = map[string]string{"l80": "0"}
	}
	for _, typeURL := range []string{cds, eds, lds, rds} {
		wanted := slices.Sorted(maps.Keys(c.want(typeURL)))
		there := func(name string) bool { return r[typeURL][name] != "" }
		switch i := slices.IndexFunc(wanted, there); {
		case i >= 0:
			r[typeURL][wanted[i]] += "'"
		case typeURL == eds && len(wanted) > 0:
			r[cds][wanted[0]], r[eds][wanted[0]] = "0", "1"
		case typeURL == rds && len(wanted) > 0:
			r[rds][wanted[0]] = slices.Min(slices.Collect(maps.Keys(r[cds])))
		}
	}
}

// text spells effects out, the same for the same effects.
func (e effects) text() string {
	var subscribe wish
	if e.subscribe != nil {
		subscribe = *e.subscribe
	}
	var report Outcome
	if e.report != nil {
		report = *e.report
		report.Has, report.Culprits = nil, nil // by address
	}
	return fmt.Sprintf("subscribe %+v report %+v turn %v answer %v unknown %v stale %v", subscribe, report, e.turn, e.answer, e.unknown, e.stale)
}

// TestSeedsReproduce: a seed is a history. Otherwise none that fails could be looked at again.
func TestSeedsReproduce(t *testing.T) {
	for _, delta := range []bool{false, true} {
		for _, refuse := range []bool{false, true} {
			for seed := range uint64(50) {
				once, again := history(t, seed, delta, refuse), history(t, seed, delta, refuse)
				if diff := cmp.Diff(once, again); diff != "" {
					t.Fatalf("seed %d, delta %v, refusals %v:\n%s", seed, delta, refuse, diff)
				}
			}
		}
	}
}
