package zookeeper

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// registry publishes what ZooKeeper has.
type registry struct{ config *Config }

// firstRetry is how long it takes until there is another session after one that failed.
const firstRetry = 250 * time.Millisecond

// Run follows ZooKeeper until ctx ends. While there is no session, what was read last stays.
func (r registry) Run(ctx context.Context, out sdk.Publisher) error {
	b := newBook(r.config, out)
	l := &loop{config: r.config, out: out, book: b, follower: newFollower(r.config, b), faultSet: kinds.NewFaultSet(time.Now), said: map[string]time.Time{}}
	for failures := 0; ; failures++ {
		began := time.Now()
		err := l.visit(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if l.failed != nil {
			return l.failed
		}
		if time.Since(began) > r.config.MaxRetry {
			failures = 0
		}
		if err := l.give(); err != nil {
			return err
		}
		l.fails(err)
		sdk.Lost(ctx, err)
		wait := min(firstRetry<<min(failures, 20), r.config.MaxRetry)
		if sdk.Sleep(ctx, wait-rand.N(wait/2+1)) != nil {
			return nil
		}
	}
}

// loop is what one goroutine has of a run.
type loop struct {
	config   *Config
	out      sdk.Publisher
	book     *book
	follower *follower
	faultSet kinds.FaultSet
	synced   bool
	away     bool
	said     map[string]time.Time
	progress time.Time
	told     time.Time
	gave     time.Time
	failed   error // publishing did
}

// visit is one session.
func (l *loop) visit(ctx context.Context) error {
	s, err := open(ctx, l.config)
	if err != nil {
		return err
	}
	l.follower.begin(time.Now())
	work, results := make(chan readJob), make(chan found)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range l.config.Limits.Reads {
		readers.Go(func() {
			for e := range work {
				read := s.read
				if e.plain {
					read = s.again
				}
				r := read(e.target)
				r.number = e.number
				select {
				case results <- r:
				case <-done:
				}
			}
		})
	}
	defer readers.Wait()
	defer close(work)
	defer s.close()
	defer close(done)
	refresh := time.NewTicker(l.config.Refresh)
	defer refresh.Stop()
	for {
		var to chan<- readJob
		var e readJob
		if next, ok := l.follower.next(); ok {
			e, to = l.follower.job(next), work
		}
		timer := time.NewTimer(l.pause())
		select {
		case <-ctx.Done():
		case <-s.over:
			err = s.reason(errSilent)
		case <-timer.C:
			l.follower.rings(time.Now())
		case to <- e:
			timer.Stop()
			l.follower.starts(e, time.Now())
			continue
		case <-refresh.C:
			l.follower.refresh()
		case <-s.wake:
			for path := range s.news() {
				l.follower.changed(path)
			}
		case r := <-results:
			err = l.handleAll(s, r, results)
		}
		if err == nil && l.follower.late(time.Now().Add(-2*l.config.Session)) {
			err = errLate
		}
		timer.Stop()
		if ctx.Err() != nil || err != nil {
			return err
		}
		if l.failed = l.publish(ctx); l.failed != nil {
			return l.failed
		}
	}
}

// readJob is a target to be read, and the number of the read; plain: it is watched already.
type readJob struct {
	target
	plain  bool
	number int
}

// pause is how long nothing is to be done unless news come.
func (l *loop) pause() time.Duration {
	most := time.Second // for signs of life
	if l.book.services.Pending() {
		most = l.gather()
	}
	if at := l.follower.alarm(); !at.IsZero() {
		return min(max(time.Until(at), 0), most)
	}
	return most
}

// errLate ends a session in which a question has no answer, though the server is there.
var errLate = errors.New("an answer has not come within twice the session timeout")

// handleAll takes what was read, and what else was meanwhile, up to as much as one revision should
// bring.
func (l *loop) handleAll(s *session, r found, results <-chan found) error {
	for n := 0; ; n++ {
		err := l.follower.handle(r, time.Now())
		s.done(r)
		if err != nil || n >= 1000 {
			return err
		}
		select {
		case r = <-results:
		default:
			return nil
		}
	}
}

// gather is for how long changes gather while more is being read.
func (l *loop) gather() time.Duration {
	if !l.synced {
		return time.Second
	}
	return 100 * time.Millisecond
}

// give publishes what changed of services and endpoints.
func (l *loop) give() error {
	l.gave = time.Now()
	return l.book.publish()
}

// publish publishes what changed, unless more comes at once, and Synced once the first list is in.
func (l *loop) publish(ctx context.Context) error {
	if !l.follower.busy() || time.Since(l.gave) >= l.gather() {
		if err := l.give(); err != nil {
			return err
		}
	}
	if l.away && len(l.follower.queue) == 0 {
		l.away = false
		delete(l.said, "away")
		l.out.Log(sdk.Info, "ZooKeeper answers again")
		sdk.Found(ctx)
	}
	for root, why := range l.follower.refused {
		if !l.often("refused " + root.path) {
			l.out.Log(sdk.Error, "ZooKeeper doesn't let a root be read", "root", root.path, "error", why.Error()+hint(why))
		}
	}
	if err := l.tell(); err != nil {
		return err
	}
	if !l.synced && l.follower.synced() && !l.book.services.Pending() {
		l.synced = true
		l.out.Log(sdk.Info, "the first list is in", "hosts", len(l.book.hosts), "nodes", len(l.book.sources))
		return l.out.Synced()
	}
	if now := time.Now(); now.Sub(l.progress) > time.Second {
		l.progress = now
		sdk.Progress(ctx)
	}
	return nil
}

// often reports whether something was said within the last minute.
func (l *loop) often(what string) bool {
	now := time.Now()
	if at, ok := l.said[what]; ok && now.Sub(at) < time.Minute {
		return true
	}
	l.said[what] = now
	return false
}

func (l *loop) fails(err error) {
	l.away = true
	if err != nil && !l.often("away") {
		l.out.Log(sdk.Warn, "there is no session with ZooKeeper; what was read last stays", "error", clip(err.Error())+hint(err))
	}
}

const (
	// mostFaults are shown, mostLogged are logged at once.
	mostFaults, mostLogged = 1000, 20
	// tellEvery is how often they are looked at.
	tellEvery = 300 * time.Millisecond
)

// tell publishes faults and logs those that are new.
func (l *loop) tell() error {
	now := time.Now()
	if !l.book.news || !l.synced && !l.follower.synced() || now.Sub(l.told) < tellEvery {
		return nil
	}
	l.book.news, l.told = false, now
	all := l.book.faults()
	kinds.SortFaults(all)
	all = all[:min(len(all), mostFaults)]
	c := l.faultSet.Show(all)
	logged := 0
	for _, f := range c.New {
		if f.Level() >= sdk.Warn && logged < mostLogged {
			logged++
			f.Log(l.out.Log)
		}
	}
	if more := len(c.New) - logged; more > 0 {
		l.out.Log(sdk.Info, "more of what ZooKeeper has is not in the mesh as it is there; `coxswain config` shows what and why", "reasons", more)
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return l.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}
