package eureka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Registry publishes what Eureka has.
type Registry struct {
	config *Config
	client *client
}

// New returns the registry of a config; an error says that its TLS files can't be read.
func New(c *Config) (*Registry, error) {
	made, err := newClient(c)
	if err != nil {
		return nil, err
	}
	return &Registry{c, made}, nil
}

// Run asks and publishes until ctx ends. It says Synced when a server has said what there is.
func (r *Registry) Run(ctx context.Context, out sdk.Publisher) error {
	defer r.client.close()
	l := newLoop(r.config, r.client, out)
	for {
		err := l.ask(ctx, time.Now)
		if ctx.Err() != nil {
			return nil
		}
		if err := l.publish(ctx, err); err != nil {
			return err
		}
		if sdk.Sleep(ctx, l.pause(err)) != nil {
			return nil
		}
	}
}

// asks is a client: it asks a server.
type asks interface {
	get(ctx context.Context, server, path string) ([]byte, error)
}

// loop is what one goroutine has of a run.
type loop struct {
	config *Config
	client asks
	out    sdk.Publisher
	view   *view
	book   *instances.Book
	// services are those that an instance is in.
	services map[string][]string
	// server is the place of the one that is asked, teller that of the one that told everything
	// last; noDeltas: it doesn't tell what changed.
	server, teller int
	noDeltas       bool
	// answered is when the last answer that counts was asked for, and everything when the last list
	// of everything was; zero: it has to be now.
	answered, everything time.Time
	// failures are so many in a row.
	failures   int
	lost       bool
	synced     bool
	complained time.Time
}

func newLoop(c *Config, client asks, out sdk.Publisher) *loop {
	return &loop{config: c, client: client, out: out, view: newView(c.MaxInstances), services: map[string][]string{}, book: instances.New(instances.Naming{
		Source: "eureka", Registry: "Eureka", Namespace: c.MeshNamespace, Host: c.host, Reasons: reasons,
	})}
}

// ask asks once: for what changed or, where that is not enough, for everything. An error says that
// the server's answer counts for nothing.
func (l *loop) ask(ctx context.Context, clock func() time.Time) error {
	now := clock()
	if !l.noDeltas && !l.everything.IsZero() && now.Sub(l.everything) < l.config.Full && now.Sub(l.answered) < l.config.DeltaWindow {
		switch done, err := l.delta(ctx); {
		case err != nil:
			return err
		case done:
			l.answered = now
			return nil
		}
		now = clock()
	}
	body, err := l.client.get(ctx, l.url(), "/apps"+l.config.query())
	if err != nil {
		return err
	}
	all, err := read(body, l.config.MaxInstances)
	if err != nil {
		return err
	}
	if len(all.instances)+len(all.broken) == 0 && !l.config.AllowEmpty && (!l.synced || !l.view.empty()) {
		return errEmpty
	}
	if err := l.view.full(all, l.teller == l.server, now); err != nil {
		return err
	}
	l.answered, l.everything, l.teller = now, now, l.server
	return nil
}

// delta asks for what changed. done: what there is here is what the server has then.
func (l *loop) delta(ctx context.Context) (done bool, err error) {
	body, err := l.client.get(ctx, l.url(), "/apps/delta"+l.config.query())
	if refused := (*refusal)(nil); errors.As(err, &refused) && (refused.status == 403 || refused.status == 404) {
		l.noDeltas = true
		l.out.Log(sdk.Info, "the server doesn't tell what changed, and is asked for everything each time", "server", l.url())
		return false, nil
	}
	if err != nil {
		return false, err
	}
	changes, err := read(body, l.config.MaxInstances)
	if err != nil {
		return false, err
	}
	return l.view.delta(changes), nil
}

func (l *loop) url() string { return l.config.Servers[l.server] }

// lostAfter is how many questions in a row, and at least one of each server, must fail for Eureka
// to be away.
const lostAfter = 2

// publish publishes what changed, and reports whether Eureka is away.
func (l *loop) publish(ctx context.Context, failed error) error {
	if failed != nil {
		l.fails(ctx, failed)
	}
	l.apply()
	any, err := l.book.Publish(l.out)
	if err != nil {
		return err
	}
	switch {
	case failed != nil:
	case !l.synced:
		l.synced = true
		l.out.Log(sdk.Info, "the first list is in", "services", l.book.Services(), "instances", len(l.view.have))
		if err := l.out.Synced(); err != nil {
			return err
		}
		l.found(ctx)
	default:
		l.found(ctx)
	}
	if !any {
		sdk.Progress(ctx)
	}
	return nil
}

// fails notes that a server can't be asked; the next one is asked for everything.
func (l *loop) fails(ctx context.Context, why error) {
	l.failures++
	at := l.url()
	l.server, l.noDeltas, l.everything = (l.server+1)%len(l.config.Servers), false, time.Time{}
	why = fmt.Errorf("%s: %s", at, instances.Clip(why.Error()))
	if now := time.Now(); now.Sub(l.complained) > time.Minute {
		l.complained = now
		l.out.Log(sdk.Warn, "Eureka can't be asked; what it said last stays", "error", why)
	}
	if l.failures >= max(lostAfter, len(l.config.Servers)) {
		l.lost = true
		l.view.away()
		sdk.Lost(ctx, why)
	}
}

// found notes that a server answers.
func (l *loop) found(ctx context.Context) {
	if l.failures == 0 {
		return
	}
	if l.failures = 0; l.lost {
		l.lost, l.complained = false, time.Time{}
		l.out.Log(sdk.Info, "Eureka answers again", "server", l.url())
		sdk.Found(ctx)
	}
}

// firstRetry is how long it takes until something is asked again that failed once.
const firstRetry = 250 * time.Millisecond

// pause is how long nothing is asked: up to a tenth less than the interval, or, after failures,
// twice as long each time that all servers have failed, up to a half less.
func (l *loop) pause(failed error) time.Duration {
	if failed == nil {
		return l.config.Interval - rand.N(l.config.Interval/10+1)
	}
	d := firstRetry << min((l.failures-1)/len(l.config.Servers), 20)
	if d > l.config.MaxRetry || d <= 0 {
		d = l.config.MaxRetry
	}
	return d - rand.N(d/2+1)
}

// apply brings what changed into the book.
func (l *loop) apply() {
	if l.failures == 0 || !l.lost {
		l.view.expire(time.Now(), l.config.Keep)
	}
	lost := instances.Tally{}
	if l.view.left > 0 {
		lost[lostLimit] = instances.Example{Count: l.view.left, Of: "maxInstances"}
	}
	l.book.Set("applications", "", nil, lost)
	changed := l.view.drain()
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		i := l.view.have[key]
		missing := i == nil && l.view.held[key] != nil
		if missing {
			i = l.view.held[key].instance
		}
		l.set(key, i, missing)
	}
}

// set makes what there is of an instance; nil: it is gone, or can't be read and never could.
func (l *loop) set(key string, i *instance, missing bool) {
	now := mapped{lost: instances.Tally{}}
	if i != nil && l.config.Applications.Select(strings.ToUpper(i.App)) {
		now = l.config.members(i)
	}
	if why := l.view.bad[key]; why != "" {
		now.lost.Add(lostRecord, key+": "+why)
	}
	if missing {
		now.lost.Add(lostMissing, key)
	}
	if now.failed {
		now.services = map[string][]instances.Member{}
		for _, s := range l.services[key] {
			now.services[s] = l.book.Members(s, key)
		}
	}
	names := slices.Sorted(maps.Keys(now.services))
	if len(names) == 0 && len(now.lost) > 0 {
		app, _, _ := strings.Cut(key, "/")
		names = []string{strings.ToLower(app)}
	}
	for _, s := range l.services[key] {
		if !slices.Contains(names, s) {
			l.book.Set(s, key, nil, nil)
		}
	}
	for n, s := range names {
		var lost instances.Tally
		if n == 0 { // counted once
			lost = now.lost
		}
		l.book.Set(s, key, now.services[s], lost)
	}
	if l.services[key] = names; len(names) == 0 {
		delete(l.services, key)
	}
}
