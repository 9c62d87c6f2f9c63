package consul

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Registry publishes what Consul has.
type Registry struct {
	config *Config
	client client
}

// New returns the registry of a config; an error says that its TLS files can't be read.
func New(c *Config) (*Registry, error) {
	made, err := newClient(c)
	if err != nil {
		return nil, err
	}
	return &Registry{c, made}, nil
}

// Run asks and publishes until ctx ends. It says Synced when all datacenters have listed their
// services, and all of these were answered about.
func (r *Registry) Run(ctx context.Context, out sdk.Publisher) error {
	ctx, cancel := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer r.client.close()
	defer asking.Wait()
	defer cancel()
	l := &loop{
		config: r.config, out: out, plan: newSchedule(r.config), book: newBook(r.config),
		watches: map[string]*watch{}, lists: map[string]*watch{}, missing: map[*watch]bool{},
		complaints: newComplaints(out),
	}
	for _, d := range r.config.Datacenters {
		l.lists[d] = &watch{datacenter: d}
		l.begin(l.lists[d], time.Now())
	}
	results := make(chan result)
	for {
		now := time.Now()
		l.plan.yield(now)
		for w, wait, hot := l.plan.next(now); w != nil; w, wait, hot = l.plan.next(now) {
			ask, stop := context.WithCancelCause(ctx)
			l.plan.starts(w, now, wait, hot, stop)
			q := w.question(wait)
			asking.Go(func() {
				defer stop(nil)
				select {
				case results <- result{w, q, w.ask(ask, r.client, q)}:
				case <-ctx.Done():
				}
			})
		}
		timer := time.NewTimer(l.plan.alarm(now))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case one := <-results:
			l.handle(one)
			l.handleMore(results)
			l.reach(ctx)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
		if err := l.publish(ctx); err != nil {
			return err
		}
	}
}

// result is an answer to a question.
type result struct {
	watch    *watch
	question question
	answer   answer
}

// loop is what one goroutine has of a run.
type loop struct {
	config  *Config
	out     sdk.Publisher
	plan    *schedule
	book    *book
	watches map[string]*watch // of services, by DATACENTER/NAME
	// lists are the watches of lists, by datacenter; failed is why one can't be had, away that none
	// can, as the core was told.
	lists        map[string]*watch
	failed, away error
	// missing are watches without whose first answers the first list is not in.
	missing    map[*watch]bool
	synced     bool
	said       time.Time
	complaints *complaints
}

func (l *loop) begin(w *watch, now time.Time) {
	l.missing[w] = true
	l.plan.push(w, now)
}

// handleMore takes what else is there, up to as much as one revision should bring.
func (l *loop) handleMore(results <-chan result) {
	for range 1000 {
		select {
		case one := <-results:
			l.handle(one)
		default:
			return
		}
	}
}

// handle takes an answer, and has its watch asked again.
func (l *loop) handle(r result) {
	w, now := r.watch, time.Now()
	l.plan.ends(w)
	switch {
	case w.dropped:
		return
	case errors.Is(r.answer.err, errYield):
		l.plan.push(w, now)
		return
	}
	before := w.index
	judged, err := w.judge(r.question, r.answer)
	switch judged {
	case fails:
		if l.complaints.fails(w, err, now); w.failures >= 5 && !l.complaints.away(w.datacenter) {
			l.book.hold(w, lostAnswer)
		}
		l.plan.push(w, now.Add(w.retry(l.config.MaxRetry)))
		l.failed = err
		return
	case hides:
		l.book.hold(w, lostHidden)
		l.complaints.hides(w, now)
		l.plan.push(w, now.Add(l.config.MaxRetry))
		return
	case doubtful:
		l.plan.push(w, now)
		return
	case gone:
		l.drop(w)
		return
	}
	w.note(r.answer, before, now)
	delete(l.missing, w)
	l.complaints.answers(w, now)
	switch {
	case judged == nothingNew:
		l.book.release(w)
	case w.lists():
		l.list(w, r.answer.names, now)
	default:
		l.book.take(w, r.answer.listed)
	}
	l.plan.push(w, later(now, w.asked.Add(l.config.Interval)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// reach tells the core whether Consul is away: no datacenter's list of services can be had, and
// that not by chance once.
func (l *loop) reach(ctx context.Context) {
	for _, d := range l.config.Datacenters {
		if l.lists[d].failures < lostAfter {
			if l.away != nil && l.lists[d].failures == 0 {
				l.away = nil
				sdk.Found(ctx)
			}
			return
		}
	}
	if l.away == nil {
		l.away = errors.New(instances.Clip(l.failed.Error()))
		sdk.Lost(ctx, l.away)
	}
}

// lostAfter is how often in a row a list can't be had where Consul is away.
const lostAfter = 2

// list follows a datacenter's list of services. One that it lacks is asked about once more before
// it goes, unless the list was cut; one that it has, and that doesn't count, goes at once. New ones
// are left out where there are MaxServices.
func (l *loop) list(list *watch, all services, now time.Time) {
	lost, names := instances.Tally{}, all.all
	for _, name := range slices.Sorted(maps.Keys(names)) {
		key := list.datacenter + "/" + name
		switch {
		case l.watches[key] != nil || !l.config.Services.selects(name, names[name]):
		case !fits(name):
			lost.Add(lostService, strconv.Quote(name))
		case len(l.watches) >= l.config.MaxServices:
			lost.Add(lostLimit, name)
		default:
			l.watches[key] = &watch{datacenter: list.datacenter, name: name}
			l.begin(l.watches[key], now)
		}
	}
	if all.left > 0 {
		lost[lostLimit] = instances.Example{Count: lost[lostLimit].Count + all.left, Of: list.String()}
	}
	l.book.Set(list.String(), "", nil, lost)
	if all.left > 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(l.watches)) {
		w := l.watches[key]
		if w.datacenter != list.datacenter {
			continue
		}
		tags, listed := names[w.name]
		switch {
		case listed && !l.config.Services.selects(w.name, tags):
			l.drop(w)
		case listed:
			w.unlisted = false
		case !w.unlisted:
			w.unlisted = true
			l.plan.hurry(w)
		}
	}
}

// fits reports whether a service may have a name: it is asked about by a path that ends with it.
func fits(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(name, unicode.IsControl)
}

// drop ends a watch, and what there was of its service in its datacenter goes.
func (l *loop) drop(w *watch) {
	w.dropped = true
	l.plan.hurry(w)
	delete(l.missing, w)
	delete(l.watches, w.datacenter+"/"+w.name)
	l.complaints.forget(w)
	l.book.remove(w)
}

// publish publishes what changed, and Synced once nothing is missing.
func (l *loop) publish(ctx context.Context) error {
	any, err := l.book.Publish(l.out)
	if err != nil {
		return err
	}
	if !l.synced && len(l.missing) == 0 && !l.blind() {
		l.synced = true
		l.out.Log(sdk.Info, "the first list is in", "services", len(l.watches))
		return l.out.Synced()
	}
	if now := time.Now(); now.Sub(l.said) > time.Second && !any {
		l.said = now
		sdk.Progress(ctx)
	}
	return nil
}

// blind reports whether the token may see services, but instances of none of them: it lacks the
// right to see nodes. A list like that is no first one.
func (l *loop) blind() bool {
	filtered := false
	for _, w := range l.watches {
		if w.had > 0 {
			return false
		}
		filtered = filtered || w.filtered
	}
	if filtered {
		l.complaints.blind(time.Now())
	}
	return filtered
}
