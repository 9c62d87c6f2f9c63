package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const (
	// shortest and longest are the pauses between two changes of an entry: each that comes soon
	// after another one doubles it. What fails is tried again as late.
	shortest, longest = time.Second, time.Minute
	// lag is how long a row may take to show what was written.
	lag = 5 * time.Second
	// patience is how long a change of an entry may take.
	patience = 15 * time.Second
)

// controller registers agents. Its maps are guarded by mu, which nobody holds who waits for the
// core: what the core tells of clients waits for it.
type controller struct {
	config  Config
	out     sdk.Publisher
	objects sdk.Objects
	// me is this replica's name in entries, the same while its core runs.
	me string
	// writes bounds how often is written.
	writes *rate.Limiter
	// lines bounds how many agents that are refused are logged.
	lines *rate.Limiter
	began time.Time
	woken chan struct{}

	mu sync.Mutex
	// agents are by connection and by the key of their entry. refused are others, by connection.
	agents  map[uint64]*agent
	byKey   map[string][]*agent
	refused map[uint64]*refusal
	// entries and groups are those of the newest state.
	entries map[string]known
	groups  map[string]bool
	// paces are when entries may be changed, made those that were made and have no row yet.
	paces  map[string]*pace
	made   map[string]time.Time
	counts counts
}

// refusal is of a client that gets no entry.
type refusal struct {
	why, from string
	said      bool
}

// known is a row and what it says.
type known struct {
	row *pb.Row
	*entry
}

// pace is when an entry may be changed again.
type pace struct {
	free  time.Time
	pause time.Duration
	// seen is the row of the entry when it was looked at last, until when it counts: what was
	// written comes as another one.
	seen  *pb.Row
	until time.Time
	// why its agent was refused, as it was logged.
	why string
}

// slow notes that the entry was changed, or could not be.
func (p *pace) slow(now time.Time) {
	if now.Sub(p.free) > 2*p.pause {
		p.pause = 0
	}
	p.pause = min(max(2*p.pause, shortest), longest)
	p.free = now.Add(p.pause)
}

// counts are for metrics.
type counts struct{ made, claimed, parted, removed, reported, failed float64 }

func newController(c Config) *controller {
	return &controller{
		config: c, writes: rate.NewLimiter(rate.Limit(c.WritesPerSecond), max(int(c.WritesPerSecond), 1)), lines: rate.NewLimiter(1, 20),
		woken: make(chan struct{}, 1), agents: map[uint64]*agent{}, byKey: map[string][]*agent{}, refused: map[uint64]*refusal{},
		entries: map[string]known{}, groups: map[string]bool{}, paces: map[string]*pace{}, made: map[string]time.Time{},
	}
}

// Clients implements sdk.ClientWatcher.
func (c *controller) Clients() sdk.ClientWish {
	return sdk.ClientWish{Metadata: []string{groupKey}, Reports: []string{healthType}}
}

// Connected implements sdk.ClientWatcher.
func (c *controller) Connected(client sdk.Client) {
	a, err := c.config.read(client)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(client.Connection)
	if err != nil {
		c.refused[client.Connection] = &refusal{why: err.Error(), from: client.RemoteAddress}
	} else {
		c.agents[a.connection] = a
		c.byKey[a.key] = append(c.byKey[a.key], a)
	}
	c.wake()
}

// Disconnected implements sdk.ClientWatcher.
func (c *controller) Disconnected(connection uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(connection)
	c.wake()
}

// Reported implements sdk.ClientWatcher.
func (c *controller) Reported(connection uint64, _, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.agents[connection]; a != nil {
		a.word = &reason
		c.wake()
	}
}

func (c *controller) forget(connection uint64) {
	delete(c.refused, connection)
	a := c.agents[connection]
	if a == nil {
		return
	}
	delete(c.agents, connection)
	c.byKey[a.key] = slices.DeleteFunc(c.byKey[a.key], func(b *agent) bool { return a == b })
	if len(c.byKey[a.key]) == 0 {
		delete(c.byKey, a.key)
	}
}

func (c *controller) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// latest is the agent of an entry that connected last.
func (c *controller) latest(key string) (a *agent) {
	for _, b := range c.byKey[key] {
		if a == nil || b.since.After(a.since) {
			a = b
		}
	}
	return a
}

// Run registers agents until ctx ends.
func (c *controller) Run(ctx context.Context, out sdk.Publisher) error {
	c.out, c.objects = out, sdk.ObjectsOf(out)
	first, ok := begun(ctx, out)
	if !ok {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	c.me, c.began = replicaName(host, first.Revision().Epoch), time.Now()
	var beside sync.WaitGroup
	defer beside.Wait()
	if c.config.Alone {
		beside.Go(func() { _ = c.sweep(ctx) })
	} else {
		beside.Go(func() { c.live(ctx) })
		beside.Go(func() {
			e := lead.Election{Objects: c.objects, Log: out.Log, Namespace: c.config.Namespace, Name: leaseName, Duration: c.config.Lease}
			_ = e.Run(ctx, c.sweep)
		})
	}
	return c.follow(ctx)
}

// begun waits for the first state.
func begun(ctx context.Context, out sdk.Publisher) (*state.State, bool) {
	for {
		s, newer := out.State()
		if s.Revision().Epoch != 0 {
			return s, true
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// follow has entries say what agents are connected, until ctx ends.
func (c *controller) follow(ctx context.Context) error {
	for {
		s, newer := c.out.State()
		due, refused, at := c.due(s, time.Now())
		for _, r := range refused {
			c.tell(r.why, "from", r.from)
		}
		for _, key := range due {
			if c.settle(ctx, key); ctx.Err() != nil {
				return nil
			}
		}
		if err := c.measure(); err != nil {
			return err
		}
		if len(due) > 0 {
			continue
		}
		timer := time.NewTimer(time.Until(at))
		if at.IsZero() {
			timer.Stop()
		}
		select {
		case <-newer:
		case <-c.woken:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// take takes the rows of a state in.
func (c *controller) take(s *state.State, now time.Time) {
	entries, groups := make(map[string]known, len(c.entries)), map[string]bool{}
	for key, row := range s.Table(kinds.WorkloadEntry).All() {
		k := c.entries[key]
		if k.row != row {
			k = known{row, ofRow(row)}
		}
		if k.entry != nil {
			entries[key] = k
		}
	}
	for key := range s.Table(kinds.WorkloadGroup).All() {
		groups[key] = true
	}
	c.entries, c.groups = entries, groups
	for key, at := range c.made {
		if _, ok := entries[key]; ok || now.Sub(at) > lag {
			delete(c.made, key)
		}
	}
	for key, p := range c.paces {
		if _, ok := entries[key]; !ok && len(c.byKey[key]) == 0 && now.Sub(p.free) > 2*p.pause {
			delete(c.paces, key)
		}
	}
}

// due returns the keys of entries that something is to be done about, those that waited for
// longest first, clients that are refused since it was called last, and when the next entry may be
// due.
func (c *controller) due(s *state.State, now time.Time) (keys []string, refused []*refusal, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(s, now)
	later := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, r := range c.refused {
		if !r.said {
			r.said = true
			refused = append(refused, r)
		}
	}
	v := c.view(now, false)
	if !v.settled {
		later(c.began.Add(c.config.Grace))
	}
	look := func(key string) {
		e, p := c.entries[key], c.paces[key]
		s, again, _ := v.next(e.entry, c.latest(key))
		later(again)
		switch {
		case s == nothing:
		case p != nil && now.Before(p.free):
			later(p.free)
		case p != nil && p.seen == e.row && now.Before(p.until):
			later(p.until)
		default:
			keys = append(keys, key)
		}
	}
	for key := range c.byKey {
		look(key)
	}
	for key := range c.entries {
		if len(c.byKey[key]) == 0 {
			look(key)
		}
	}
	free := func(key string) time.Time {
		if p := c.paces[key]; p != nil {
			return p.free
		}
		return time.Time{}
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(free(a).Compare(free(b)), cmp.Compare(a, b)) })
	return keys, refused, at
}

// view is what decisions are made by.
func (c *controller) view(now time.Time, exact bool) view {
	return view{
		me: c.me, now: now, grace: c.config.Grace, settled: now.Sub(c.began) >= c.config.Grace, reports: c.config.HealthChecks, exact: exact,
	}
}

// tell logs why an agent is not registered.
func (c *controller) tell(why string, args ...any) {
	if c.lines.Allow() {
		c.out.Log(sdk.Warn, "an agent is not registered: "+why, args...)
	}
}

// errRefused is why an agent gets no entry, for now.
type errRefused string

func (e errRefused) Error() string { return string(e) }

// settle does what is to be done about an entry, and what follows from that.
func (c *controller) settle(ctx context.Context, key string) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	changed, err := c.steps(limited, key)
	if ctx.Err() != nil {
		return
	}
	var no errRefused
	refused := errors.As(err, &no)
	raced := sdk.CodeOf(err) == sdk.StoreConflict || sdk.CodeOf(err) == sdk.StoreAlreadyExists
	switch pause, fresh := c.note(key, changed, err, refused, raced); {
	case !fresh:
	case refused:
		c.tell(err.Error(), "entry", key)
	case c.lines.Allow():
		c.out.Log(sdk.Warn, "a WorkloadEntry could not be written; it is tried again", "entry", key, "after", pause.String(), "error", err.Error())
	}
}

// note notes what became of an entry. fresh: it failed in another way than before, and not only as
// somebody else was faster.
func (c *controller) note(key string, changed bool, err error, refused, raced bool) (pause time.Duration, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, p := time.Now(), c.paces[key]
	if p == nil {
		p = &pace{}
		c.paces[key] = p
	}
	if p.seen, p.until = c.entries[key].row, now.Add(lag); err != nil && !refused {
		p.until = time.Time{}
	}
	if changed || err != nil {
		p.slow(now)
	}
	if err == nil || raced {
		p.why = ""
		return p.pause, false
	}
	if !refused {
		c.counts.failed++
	}
	fresh = p.why != err.Error()
	p.why = err.Error()
	return p.pause, fresh
}

// steps are at most two: an entry that was made is said how its workload is.
func (c *controller) steps(ctx context.Context, key string) (changed bool, err error) {
	for range 2 {
		e, object, err := c.get(ctx, key)
		if err != nil {
			return changed, err
		}
		c.mu.Lock()
		a := c.latest(key)
		s, _, why := c.view(time.Now(), true).next(e, a)
		var word *string
		if a != nil {
			word = a.word
		}
		if s == create {
			err = c.room(key, a)
		}
		if s == nothing && a != nil {
			a.told = word
		}
		c.mu.Unlock()
		switch {
		case s == refuse:
			return changed, errRefused(why)
		case err != nil:
			return changed, err
		case s == nothing:
			return changed, nil
		}
		if err := c.do(ctx, s, key, object, a, word); err != nil {
			return changed, err
		}
		changed = true
		if s == part || s == remove {
			return changed, nil
		}
	}
	return changed, nil
}

// do takes a step.
func (c *controller) do(ctx context.Context, s step, key string, object []byte, a *agent, word *string) (err error) {
	if err := c.writes.Wait(ctx); err != nil {
		return err
	}
	count, what := &c.counts.made, "registered an agent"
	switch s {
	case create:
		err = c.create(ctx, a)
	case claim:
		count, what = &c.counts.claimed, "an agent is connected again, or to this replica"
		err = c.annotate(ctx, object, map[string]*string{
			controllerAnnotation: &c.me, connectedAnnotation: moment(a.since), goneAnnotation: nil, identityAnnotation: new(a.identity()),
		})
	case part:
		count, what = &c.counts.parted, "an agent has gone"
		err = c.part(ctx, object)
	case remove:
		count, what = &c.counts.removed, "removed the entry of an agent that has gone"
		err = c.remove(ctx, key, object)
	case report:
		count, what = &c.counts.reported, "the health of a workload has changed"
		err = c.report(ctx, object, *word)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	*count++
	switch s {
	case create:
		c.made[key] = time.Now()
	case report:
		a.told = word
	}
	c.mu.Unlock()
	c.out.Log(sdk.Info, what, "entry", key)
	return nil
}

// room says why there is no room for the entry of an agent, or that its group is not there.
func (c *controller) room(key string, a *agent) error {
	if !c.groups[kinds.Key(a.namespace, a.group)] {
		return errRefused(fmt.Sprintf("there is no WorkloadGroup %s/%s", clip(a.namespace), clip(a.group)))
	}
	var group, namespace, identity int
	count := func(at, of, by string) {
		ns, _ := kinds.SplitKey(at)
		if at == key || ns != a.namespace {
			return
		}
		namespace++
		if of == a.group {
			group++
		}
		if by == a.identity() {
			identity++
		}
	}
	for at, e := range c.entries {
		if e.automatic() {
			count(at, e.group, e.identity)
		}
	}
	for at := range c.made {
		if b := c.latest(at); b != nil {
			count(at, b.group, b.identity())
		}
	}
	l := c.config.Limits
	for _, of := range []struct {
		n, most int
		what    string
	}{{group, l.Group, "group"}, {namespace, l.Namespace, "namespace"}, {identity, l.Identity, "identity"}} {
		if of.n >= of.most {
			return errRefused(fmt.Sprintf("there are %d entries of its %s, and no more than %d may be (limits.%s)", of.n, of.what, of.most, of.what))
		}
	}
	return nil
}

// measure reports figures.
func (c *controller) measure() error {
	c.mu.Lock()
	n := c.counts
	agents, refused := len(c.agents), len(c.refused)
	c.mu.Unlock()
	samples := []*sdk.Sample{
		{Name: "agents", Value: float64(agents)}, {Name: "agents_refused", Value: float64(refused)},
		{Name: "registration_failures_total", Value: n.failed, Counter: true},
	}
	for of, value := range map[string]float64{"create": n.made, "connect": n.claimed, "disconnect": n.parted, "delete": n.removed, "health": n.reported} {
		samples = append(samples, &sdk.Sample{Name: "registrations_total", Value: value, Counter: true, Labels: map[string]string{"of": of}})
	}
	return sdk.Measure(c.out, samples...)
}
