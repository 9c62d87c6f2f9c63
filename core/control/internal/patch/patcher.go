package patch

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Settings of a declared patch.
type Settings struct {
	Name string
	// Skips: where it can't answer it is left out (onFailure: skip).
	Skips bool
	// Call is how long it may take for an answer; 0: as long as Patience.
	Call time.Duration
	// Patience is how long everybody else would wait.
	Patience time.Duration
}

// Patcher is a declared patch and what it said: results are a function of the resource, the facts
// and the rows that it reads, so the same is not asked twice.
type Patcher struct {
	Settings
	// ready is what it last said of itself; nil before the first session.
	ready   *pb.Ready
	results map[key]*Result
	// open are results that are waited for.
	open map[*Result]bool
	// good are the last results that were no failure, by resource: what is served if it fails.
	good map[goodKey]*Result
	// round grows when all results are forgotten.
	round uint64
	// said is the plugin and version that the results are of.
	said  string
	calls calls
}

// key is what a result depends on.
type key struct{ typeURL, name, version, facts string }

type goodKey struct{ typeURL, name, facts string }

// Result is what became of a call, or the call itself while it is open.
type Result struct {
	by      string // the patch
	key     key
	input   *view.Body
	call    *pb.Patch
	open    bool
	until   time.Time
	changed []*view.Body
	removed []string
	// failed says why there is no result, since when.
	failed string
	since  time.Time
	// spoilt says which pieces of the answer are as before, and why.
	spoilt string
	// late: the failure is that there was no answer in time; it is asked again when there is a
	// reason to.
	late bool
}

// Type of the resource that the result is of.
func (r *Result) Type() string { return r.key.typeURL }

// Name of that resource.
func (r *Result) Name() string { return r.key.name }

// Failed says why there is no result, or which pieces of it are as before; empty: all is as the
// patch says.
func (r *Result) Failed() string { return cmp.Or(r.failed, r.spoilt) }

// Since is when it failed.
func (r *Result) Since() time.Time { return r.since }

// New returns a patch that nobody has heard of yet.
func New(s Settings) *Patcher {
	return &Patcher{Settings: s, results: map[key]*Result{}, open: map[*Result]bool{}, good: map[goodKey]*Result{}, calls: newCalls()}
}

// Describes takes what the plugin says of itself.
func (p *Patcher) Describes(ready *pb.Ready) { p.ready = ready }

// Offers reports whether the patch wants to see resources of a type. One that was never there can't
// say what it concerns, and is left out.
func (p *Patcher) Offers(typeURL string) bool {
	return p.ready != nil && slices.ContainsFunc(p.ready.Types, func(t *pb.Type) bool { return t.Url == typeURL })
}

// concerns reports whether the patch wants to see a resource.
func (p *Patcher) concerns(typeURL, name string) bool {
	if !p.Offers(typeURL) {
		return false
	}
	return len(p.ready.Names) == 0 || slices.ContainsFunc(p.ready.Names, func(glob string) bool { return matches(glob, name) })
}

// matches reports whether a name matches a glob, in which * stands for anything.
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
func (p *Patcher) facts(v *view.View) (map[string]string, string) {
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
func (p *Patcher) result(v *view.View, b *view.Body, now time.Time) (r *Result, ok bool) {
	facts, text := p.facts(v)
	k := key{v.Type, b.Name(), b.Version(), text}
	if r = p.results[k]; r != nil {
		return r, !r.open
	}
	call := &pb.Patch{Type: v.Type, Facts: facts, Resources: []*pb.Resource{{Name: b.Name(), Bytes: b.Value()}}}
	r = &Result{by: p.Name, key: k, input: b, call: call, open: true, until: now.Add(p.patience())}
	p.results[k] = r
	if err := p.encode(call); err != nil {
		r.open, r.failed, r.since = false, err.Error(), now
		return r, true
	}
	p.open[r] = true
	p.ask(r)
	return r, false
}

// patience is how long a call is waited for, by all whom the revision concerns: less each time that
// none was answered, so that a patch that has come to a stop does not hold up every change for as
// long as it may.
func (p *Patcher) patience() time.Duration {
	const least = 6 // a sixty-fourth
	return cmp.Or(max(p.Call, 0), p.Patience) >> min(p.calls.missed, least)
}

// Asking reports whether the patch owes answers.
func (p *Patcher) Asking() bool { return len(p.open) > 0 }

// Forget makes the patch be asked anew about everything: the rows that it reads have changed.
func (p *Patcher) Forget() {
	clear(p.results)
	clear(p.calls.sent)
	clear(p.open)
	p.round++
}

// Learn takes the good results of another patch of its name, which stand in for its failures.
func (p *Patcher) Learn(from *Patcher) {
	p.said = p.identity()
	if from != nil {
		p.good = maps.Clone(from.good)
	}
}

// Succeeds has everything looked at again that another patch of its name has been in: it takes that
// one's place. Bodies that mean the same as ones that proxies have are put in the place of results.
func (p *Patcher) Succeeds(last *Patcher, same map[*view.Body]*view.Body) {
	p.round = max(p.round, last.round) + 1
	for _, r := range p.results {
		for i, b := range r.changed {
			if old := same[b]; old != nil {
				r.changed[i] = old
			}
		}
	}
}

// identity is the plugin and version that results are of.
func (p *Patcher) identity() string { return p.ready.Plugin + " " + p.ready.PluginVersion }

// Failures yields the results that are failures.
func (p *Patcher) Failures() iter.Seq[*Result] {
	return func(yield func(*Result) bool) {
		for _, r := range p.results {
			if r.Failed() != "" && !yield(r) {
				return
			}
		}
	}
}

// Results is how many there are, open ones included.
func (p *Patcher) Results() int { return len(p.results) }
