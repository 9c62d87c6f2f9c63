package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// patcher is a declared patch and what it said: results are a function of the resource, the facts and the rows that it reads, so the same is
// not asked twice.
type patcher struct {
	*known
	results map[patchKey]*patched
	// open are results that are waited for, calls those of them that a live plugin was asked, by id.
	open  map[*patched]bool
	calls map[uint64]*patched
	// good are the last results that were no failure, by resource: what is served if it fails.
	good map[goodKey]*patched
	// round grows when all results are forgotten.
	round uint64
	// said is the plugin and version that the results are of.
	said string
	// missed counts how often in a row it has let calls pass without an answer.
	missed uint
	// unanswered is the same for the session that there is, calls that were answered late not counted; since when, and when it was last so.
	unanswered            int
	missedSince, missedAt time.Time
	// firstMissed is the id of the first of them, askedAt when it was sent.
	firstMissed uint64
	askedAt     time.Time
}

type patchKey struct{ typeURL, name, version, facts string }

type goodKey struct{ typeURL, name, facts string }

// patched is the result of a call, or the call itself while open.
type patched struct {
	by      string // the patch
	key     patchKey
	input   *view.Body
	call    *pb.Patch
	open    bool
	until   time.Time
	changed []*view.Body
	removed []string
	// failed says why there is no result, since when.
	failed string
	since  time.Time
	// late: the failure is that there was no answer in time; it is asked again when there is a reason to.
	late bool
}

func newPatcher(k *known) *patcher {
	return &patcher{known: k, results: map[patchKey]*patched{}, open: map[*patched]bool{}, calls: map[uint64]*patched{}, good: map[goodKey]*patched{}}
}

// concerns says whether the patch wants to see resources of a type and name.
func (p *patcher) concerns(typeURL, name string) bool {
	if !offers(p.ready, typeURL) {
		return false
	}
	return len(p.ready.Names) == 0 || slices.ContainsFunc(p.ready.Names, func(glob string) bool { return matches(glob, name) })
}

// matches says whether a name matches a glob, in which * stands for anything.
func matches(glob, name string) bool {
	head, rest, found := strings.Cut(glob, "*")
	if !found {
		return glob == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}

// facts returns those of the view's facts that the patch declared, and their key.
func (p *patcher) facts(v *view.View) (map[string]string, string) {
	if len(p.ready.Facts) == 0 {
		return nil, ""
	}
	some := map[string]string{}
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(p.ready.Facts)) {
		if value, ok := v.Facts[name]; ok {
			some[name] = value
			b.WriteString(name + "\x00" + value + "\x00")
		}
	}
	return some, b.String()
}

// result returns what becomes of a body; ok is false while the patch is being asked.
func (c *Control) result(p *patcher, v *view.View, b *view.Body) (r *patched, ok bool) {
	facts, text := p.facts(v)
	key := patchKey{v.Type, b.Name(), b.Version(), text}
	if r = p.results[key]; r != nil {
		return r, !r.open
	}
	call := &pb.Patch{Type: v.Type, Facts: facts, Resources: []*pb.Resource{{Name: b.Name(), Bytes: b.Value()}}}
	r = &patched{by: p.Name, key: key, input: b, call: call, open: true, until: time.Now().Add(p.patience(c.cfg.HoldMax))}
	p.results[key] = r
	if err := p.encode(call); err != nil {
		r.open, r.failed, r.since = false, err.Error(), time.Now()
		return r, true
	}
	p.open[r] = true
	c.ask(p, r)
	return r, false
}

// patience is how long a call is waited for, by all whom the revision concerns: less each time that none was answered, so that a patch that
// has come to a stop does not hold up every change for as long as it may.
func (p *patcher) patience(most time.Duration) time.Duration {
	const least = 6 // a sixty-fourth
	return cmp.Or(max(p.Limits.Call, 0), most) >> min(p.missed, least)
}

// ask sends a call if the plugin is there; if not, it is asked when it comes back.
func (c *Control) ask(p *patcher, r *patched) {
	s := c.sessions[p.Name]
	for _, t := range c.trials {
		if t.patcher == p {
			s = t.session
		}
	}
	if s == nil {
		return
	}
	c.nextCall++
	r.call.Id = c.nextCall
	r.call.Revision = &pb.Revision{Epoch: c.epoch, Number: s.sent}
	p.calls[r.call.Id] = r
	s.out.state(&stateJob{call: &pb.FromCore{Patch: r.call}})
}

// patcherOf is the patcher whose answers a session gives.
func (c *Control) patcherOf(s *session) *patcher {
	if t := c.trialOf(s); t != nil {
		return t.patcher
	}
	return c.patchers[s.Name]
}

// takePatched takes an answer. Late answers, and those to unknown calls, harm nobody.
func (c *Control) takePatched(s *session, m *pb.Patched) error {
	p := c.patcherOf(s)
	r := p.calls[m.Id]
	if r == nil {
		c.cfg.Metrics.Unknown(s.Name, "answer", 1)
		if p.unanswered > 0 && m.Id >= p.firstMissed && m.Id <= c.nextCall { // slow, not hung: to start it again would help nobody
			if p.unanswered = 0; time.Since(p.askedAt) <= p.Limits.Call {
				p.missed = 0 // only patience had become too short
			}
		}
		return nil
	}
	delete(p.calls, m.Id)
	p.close(r)
	p.missed, p.unanswered = 0, 0
	if m.Error != "" {
		r.failed = m.Error
		if host.Crossed(m.Error) == "call" { // says its module's runner
			c.cfg.Metrics.Crossed(s.Name, "call")
		}
	} else if bodies, err := p.decode(r.key.typeURL, m.Resources); err != nil {
		r.failed = err.Error()
	} else {
		r.changed, r.removed = bodies, m.Removes
	}
	c.answered(p, r)
	return nil
}

func (p *patcher) close(r *patched) {
	delete(p.open, r)
	if r.call != nil {
		delete(p.calls, r.call.Id)
	}
	r.open, r.call = false, nil
}

// answered notes a result, and goes on with what waited for it.
func (c *Control) answered(p *patcher, r *patched) {
	if r.failed == "" {
		p.good[goodKey{r.key.typeURL, r.key.name, r.key.facts}] = r
	} else {
		r.since = time.Now()
		c.cfg.Metrics.Fault(p.Name)
		c.cfg.Log.Warn("a patch failed", "plugin", p.Name, "type", r.key.typeURL, "resource", r.key.name, "reason", r.failed)
	}
	if c.flight != nil && c.flight.patching {
		c.advance(time.Now())
		return
	}
	c.settle()
}

// overdue fails calls that were not answered in time.
func (c *Control) overdue(now time.Time, at func(time.Time)) {
	for p := range c.allPatchers() {
		missed := false
		for r := range p.open {
			if r.until.After(now) {
				at(r.until)
				continue
			}
			if !missed {
				missed = true
				c.miss(p, r, now)
			}
			p.close(r)
			c.cfg.Metrics.Crossed(p.Name, "call")
			r.late, r.failed = true, "there was no answer in time (limits.call)"
			c.answered(p, r)
		}
	}
}

// miss notes that a call was not answered in time. A plugin that is there and answers none, not even late, is started again.
func (c *Control) miss(p *patcher, r *patched, now time.Time) {
	asked := r.until.Add(-p.patience(c.cfg.HoldMax))
	p.missed++
	s := c.sessions[p.Name]
	if s == nil || c.patcherOf(s) != p {
		return
	}
	if p.unanswered++; p.unanswered == 1 {
		p.missedSince, p.firstMissed, p.askedAt = now, r.call.Id, asked
		c.cfg.Log.Warn("a patch did not answer in time", "plugin", p.Name, "type", r.key.typeURL, "resource", r.key.name, "limit", p.Limits.Call)
	}
	if p.missedAt = now; p.unanswered >= maxUnanswered {
		s.cancel(fmt.Errorf("plugin %s hangs: it answered none of %d calls in a row within limits.call, %s, nor later", p.Name, p.unanswered, p.Limits.Call))
	}
}

// forgetResults makes a patch be asked anew about everything: the rows that it reads have changed.
func (c *Control) forgetResults(p *patcher) {
	if p == nil {
		return
	}
	p.reset()
	c.spoilAll()
}

func (p *patcher) reset() {
	clear(p.results)
	clear(p.calls)
	clear(p.open)
	p.round++
}

// retryLate makes live patches be asked again about what they did not answer in time.
func (c *Control) retryLate() {
	for _, p := range c.patchers {
		if c.sessions[p.Name] == nil {
			continue
		}
		late := false
		for key, r := range p.results {
			if r.late {
				delete(p.results, key)
				late = true
			}
		}
		if late {
			p.round++
			c.spoilAll()
		}
	}
}

// patcherIsBack asks a patch what it was asked before it died, and what failed meanwhile. What another version said before doesn't count.
func (c *Control) patcherIsBack(p *patcher) {
	clear(p.calls)
	p.unanswered = 0
	if id := p.identity(); p.said != id {
		p.said = id
		p.reset()
	}
	for key, r := range p.results {
		switch {
		case r.open:
			c.ask(p, r)
		case r.failed != "":
			delete(p.results, key)
			p.round++
		}
	}
	c.spoilAll()
	c.settle()
}

// sweep lets go of results that no composition stands on.
func (c *Control) sweep() {
	c.unswept = false
	used := map[*patched]bool{}
	note := func(composed map[composedKey]*composition) {
		for _, comp := range composed {
			for _, r := range comp.from {
				used[r] = true
			}
		}
	}
	note(c.composed)
	for _, t := range c.trials {
		note(t.composed)
	}
	for _, p := range c.patchers {
		maps.DeleteFunc(p.results, func(_ patchKey, r *patched) bool { return !r.open && !used[r] })
		maps.DeleteFunc(p.good, func(_ goodKey, r *patched) bool { return !used[r] })
	}
}
