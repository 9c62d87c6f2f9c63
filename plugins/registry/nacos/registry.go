package nacos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Registry publishes what Nacos has.
type Registry struct {
	config *Config
	login  *login
}

// New returns the registry of a config; an error says that its TLS files can't be read.
func New(c *Config) (*Registry, error) {
	l, err := newLogin(c)
	if err != nil {
		return nil, &sdk.FieldError{Field: "tls", Err: err}
	}
	return &Registry{c, l}, nil
}

// Run follows and publishes until ctx ends. It says Synced when a server has told of everything.
func (r *Registry) Run(ctx context.Context, out sdk.Publisher) error {
	defer r.login.close()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	heard := make(chan news, 64)
	l := newLoop(r.config, out)
	for _, namespace := range r.config.Namespaces {
		k := &link{config: r.config, login: r.login, namespace: namespace, news: heard, watched: map[key]*watched{}}
		running.Go(func() { k.run(ctx) })
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-heard:
			l.handle(ctx, n)
			for more := len(heard); more > 0; more-- {
				l.handle(ctx, <-heard)
			}
		case <-tick.C:
			sdk.Progress(ctx)
		}
		if err := l.publish(ctx, time.Now()); err != nil {
			return err
		}
	}
}

// loop is what one goroutine has of a run.
type loop struct {
	config *Config
	out    sdk.Publisher
	view   *view
	book   *instances.Book
	// shown are the instances of each service that are in the book.
	shown map[key]map[string]bool
	// spaces are what is known of each namespace.
	spaces map[string]*space
	lost   bool
	synced bool
	// emptySince is when Nacos said first that it has nothing.
	emptySince time.Time
	complained time.Time
}

// space is a namespace: told: a server has told of everything in it, and can be asked.
type space struct {
	told     bool
	failures int
}

func newLoop(c *Config, out sdk.Publisher) *loop {
	l := &loop{
		config: c, out: out, view: newView(c.Limits.Instances),
		shown: map[key]map[string]bool{}, spaces: map[string]*space{},
	}
	l.book = instances.New(instances.Naming{
		Source: "nacos", Registry: "Nacos", Namespace: c.MeshNamespace,
		Host: func(host string) string { return host }, Reasons: reasons,
	})
	for _, namespace := range c.Namespaces {
		l.spaces[namespace] = &space{}
	}
	return l
}

// handle takes what a link tells.
func (l *loop) handle(ctx context.Context, n news) {
	switch {
	case n.failed != nil:
		l.fails(ctx, n)
	case n.caught:
		s := l.spaces[n.namespace]
		s.told, s.failures = true, 0
	case n.group != "":
		l.listed(n)
	case n.gone:
		l.view.gone(n.key)
	case n.refused != nil:
		l.view.refuse(n.key, n.refused.Error())
	default:
		l.view.put(n.key, n.has, n.first && l.config.Keep > 0, time.Now())
	}
}

// listed shows what is wrong with a group's list.
func (l *loop) listed(n news) {
	lost := instances.Tally{}
	group := n.namespace + "/" + n.group
	if n.refused != nil {
		lost.Add(lostRefused, group+": "+n.refused.Error())
	}
	for range n.left {
		lost.Add(lostLimit, group)
	}
	l.book.Set(group, "", nil, lost)
}

// lostAfter is how many connections in a row, and at least one to each server, must fail for Nacos
// to be away.
const lostAfter = 2

// fails notes that a connection failed; another one is tried.
func (l *loop) fails(ctx context.Context, n news) {
	s := l.spaces[n.namespace]
	s.told = false
	s.failures++
	l.view.away(n.namespace)
	why := fmt.Errorf("%s", instances.Clip(n.failed.Error()))
	if now := time.Now(); now.Sub(l.complained) > time.Minute {
		l.complained = now
		l.out.Log(sdk.Warn, "Nacos can't be followed; what it said last stays", "namespace", n.namespace, "error", why)
	}
	if s.failures >= max(lostAfter, len(l.config.servers)) {
		l.lost = true
		sdk.Lost(ctx, why)
	}
}

// publish publishes what changed, and tells what there is to tell of Nacos itself.
func (l *loop) publish(ctx context.Context, now time.Time) error {
	l.view.expire(now, l.config.Keep, func(namespace string) bool { return l.spaces[namespace].told })
	l.apply()
	if _, err := l.book.Publish(l.out); err != nil {
		return err
	}
	for _, s := range l.spaces {
		if !s.told {
			return nil
		}
	}
	if !l.synced {
		if !l.believes(now) {
			return nil
		}
		l.synced = true
		l.out.Log(sdk.Info, "the first list is in", "services", l.book.Services(), "instances", l.view.total)
		if err := l.out.Synced(); err != nil {
			return err
		}
	}
	if l.lost {
		l.lost, l.complained = false, time.Time{}
		l.out.Log(sdk.Info, "Nacos can be followed again")
	}
	sdk.Found(ctx)
	return nil
}

// believes reports whether what Nacos says first is taken: a server that was just started has
// nothing, too.
func (l *loop) believes(now time.Time) bool {
	if !l.view.empty() {
		return true
	}
	if l.emptySince.IsZero() {
		if l.emptySince = now; l.config.Keep > 0 {
			l.out.Log(sdk.Info,
				"Nacos has no instance in these namespaces and groups, as one has that was just started; it is believed after a while",
				"keep", l.config.Keep)
		}
	}
	return now.Sub(l.emptySince) >= l.config.Keep
}

// apply brings what changed into the book.
func (l *loop) apply() {
	for k := range l.view.drain() {
		s := l.view.services[k]
		if s == nil {
			s = &service{}
		}
		l.set(k, s)
	}
}

// set makes what there is of a service.
func (l *loop) set(k key, s *service) {
	host, before, now := l.config.host(k), l.shown[k], map[string]bool{}
	all := make(map[string]*instance, len(s.have)+len(s.held))
	for id, r := range s.have {
		all[id] = r.instance
	}
	for id, h := range s.held {
		all[id] = h.instance
	}
	weights := times(all)
	put := func(id string, r *entry, more ...instances.Reason) {
		if r.made == nil || r.times != weights {
			made := l.config.members(k, r.instance, weights)
			r.made, r.times = &made, weights
		}
		of := k.String() + " " + id
		members, lost := r.made.members, r.made.lost
		if r.made.failed {
			members = l.book.Members(host, of)
		}
		if len(more) > 0 {
			lost = instances.Tally{}
			for reason, example := range r.made.lost {
				lost[reason] = example
			}
			for _, reason := range more {
				lost.Add(reason, of)
			}
		}
		l.book.Set(host, of, members, lost)
		now[of] = true
	}
	for id, r := range s.have {
		if s.bad[id] != "" {
			put(id, r, lostRecord)
			continue
		}
		put(id, r)
	}
	for id, h := range s.held {
		put(id, h.entry, lostMissing)
	}
	if lost := s.lost(k); len(lost) > 0 {
		l.book.Set(host, k.String(), nil, lost)
		now[k.String()] = true
	}
	for of := range before {
		if !now[of] {
			l.book.Set(host, of, nil, nil)
		}
	}
	if l.shown[k] = now; len(now) == 0 {
		delete(l.shown, k)
	}
}

// lost counts what is lost of a service as a whole.
func (s *service) lost(k key) instances.Tally {
	lost := instances.Tally{}
	for id, why := range s.bad {
		if s.have[id] == nil {
			lost.Add(lostRecord, k.String()+" "+id+": "+why)
		}
	}
	add := func(reason instances.Reason, n int, of string) {
		if n > 0 {
			lost[reason] = instances.Example{Count: n, Of: of}
		}
	}
	add(lostLimit, s.left, k.String())
	add(lostProtected, s.protected, k.String())
	if s.refused != "" {
		of := strings.Join(slices.Compact([]string{k.String(), s.refused}), ": ")
		add(lostRefused, max(len(s.have)+len(s.held), 1), of)
	}
	return lost
}
