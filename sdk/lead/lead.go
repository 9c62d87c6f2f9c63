// Package lead has one of several replicas do what only one may: leader election by Leases as
// Kubernetes has them, which are kept wherever the core's plugins write them. It is for plugins in
// Go that run as processes.
//
// Source: Kubernetes, "Leases"; k8s.io/api/coordination/v1, LeaseSpec. Who else elects by the same
// Lease, such as client-go, is understood and understands.
package lead

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

const (
	// Table has the Leases: the plugin's entry must be granted it (allow.store).
	Table = "coordination.k8s.io/Lease"
	// Duration is how long a Lease lasts where nobody says; Shortest and Longest are the least and
	// the most.
	Duration = 30 * time.Second
	Shortest = time.Second
	Longest  = time.Hour
	// soonest is how soon an attempt is made again that failed for another reason than that
	// somebody else leads, such as that who keeps Leases has not started; then the wait is doubled.
	soonest = 500 * time.Millisecond
	// pause is how long the same trouble is not said again.
	pause = time.Minute
)

// Election is one thing that one replica at a time does.
type Election struct {
	// Objects keep the Lease: sdk.ObjectsOf a plugin's Publisher, or what a plugin has of its own.
	Objects sdk.Objects
	// Log is the Publisher's.
	Log func(level sdk.Level, text string, args ...any)
	// Namespace and Name are the Lease's. All who do the same thing name the same.
	Namespace, Name string
	// Duration of the Lease; 0: 30 s. It must be at least Shortest and at most Longest.
	Duration time.Duration
}

// Run has task run while this replica leads, again whenever it leads anew, until ctx ends or task
// returns by itself, whose error it returns. The ctx of task ends when ctx does, when somebody else
// is seen to have the Lease, or when it could not be renewed for half of its duration: task has the
// other half to return, before another replica may lead. It is waited for; then the Lease is free
// for others at once. What is in the way (nobody keeps Leases, a right is missing) is logged, once
// a minute, and tried again: without an answer nobody leads. Clocks of replicas may differ: each
// measures by its own how long a Lease has not changed.
//
// A process that was stopped meanwhile finds out when it goes on: task writes with the versions
// that it has read, which the store compares.
func (e Election) Run(ctx context.Context, task func(ctx context.Context) error) error {
	if e.Duration == 0 {
		e.Duration = Duration
	}
	if e.Duration < Shortest || e.Duration > Longest {
		return fmt.Errorf("a Lease lasts between %s and %s, not %s", Shortest, Longest, e.Duration)
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	l := &lease{Election: e, identity: host + "_" + rand.Text()}
	for {
		if !l.acquire(ctx) {
			return nil
		}
		done, err := l.term(ctx, task)
		l.release(context.WithoutCancel(ctx))
		if done || ctx.Err() != nil {
			return err
		}
	}
}

// acquire waits until the Lease is held; false: ctx has ended.
func (l *lease) acquire(ctx context.Context) bool {
	for pause := soonest; ; pause = min(2*pause, l.retry()) {
		err := l.hold(ctx)
		if err == nil {
			return true
		}
		if errors.Is(err, errTaken) {
			pause = l.retry()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false
		}
	}
}

// retry is when the Lease is looked at again: a quarter of its duration, and somewhat more, so that
// replicas that began together part.
func (l *lease) retry() time.Duration { return l.Duration/4 + mathrand.N(l.Duration/20) }

// term has task run while the Lease is held. done: it ended by itself.
func (l *lease) term(ctx context.Context, task func(ctx context.Context) error) (done bool, err error) {
	working, stop := context.WithCancel(ctx)
	l.Log(sdk.Info, "this replica leads", "lease", l.where(), "as", l.identity)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		defer stop()
		l.renew(working)
	})
	err = task(working)
	done = working.Err() == nil
	stop()
	renewing.Wait()
	l.Log(sdk.Info, "this replica leads no more", "lease", l.where(), "as", l.identity)
	if !done {
		return false, nil // what it says is that its ctx ended
	}
	return true, err
}

// renew holds the Lease until ctx ends, it is somebody else's, or it could not be renewed for half
// of its duration.
func (l *lease) renew(ctx context.Context) {
	for {
		until := l.renewed.Add(l.Duration / 2)
		select {
		case <-time.After(min(l.retry(), time.Until(until))):
		case <-ctx.Done():
			return
		}
		trying, cancel := context.WithDeadline(ctx, until)
		err := l.hold(trying)
		cancel()
		if err != nil && (errors.Is(err, errTaken) || !time.Now().Before(until)) {
			return
		}
	}
}

// failed says what is in the way, unless another one was faster.
func (l *lease) failed(ctx context.Context, err error) error {
	switch sdk.CodeOf(err) {
	case sdk.StoreNotFound, sdk.StoreConflict, sdk.StoreAlreadyExists:
		return err
	}
	return l.say(ctx, err)
}

// say says what is in the way.
func (l *lease) say(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	l.troubles++
	if sdk.CodeOf(err) == sdk.StoreUnavailable && l.troubles == 1 { // as while a plugin is swapped
		return err
	}
	if now := time.Now(); l.said != err.Error() || !now.Before(l.again) {
		l.said, l.again = err.Error(), now.Add(pause)
		l.Log(sdk.Warn,
			"who leads can't be decided, and nobody does unless another replica can tell; it is tried again",
			"lease", l.where(), "error", err.Error())
	}
	return err
}

func (l *lease) where() string { return l.Namespace + "/" + l.Name }
