package analysis

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const (
	// shortest and longest are how long it is waited until what was not written is tried again.
	shortest = time.Second
	longest  = time.Minute
	// page is how many objects are read at once.
	page = 100
	// share is how many times as long as an analysis the wait for the next one is, at least.
	share = 4
)

// run writes what is found while this replica leads, until ctx ends.
func (c *Config) run(ctx context.Context, out sdk.Publisher) error {
	task := func(ctx context.Context) error {
		w := &writer{config: c, out: out, objects: sdk.ObjectsOf(out), work: newWork(), pace: rate.NewLimiter(rate.Limit(c.Rate), 1), pause: shortest}
		return w.follow(ctx)
	}
	if c.Alone {
		return task(ctx)
	}
	return lead.Election{Objects: sdk.ObjectsOf(out), Log: out.Log, Namespace: c.Namespace, Name: leaseName, Duration: c.Lease}.Run(ctx, task)
}

// writer analyzes, and writes what is found, one object after another.
type writer struct {
	config  *Config
	out     sdk.Publisher
	objects sdk.Objects
	work    *work
	pace    *rate.Limiter
	said    kube.LogLimiter

	// newer is closed when there is a newer state than that which was analyzed; analyzeAt is when
	// that may be analyzed.
	newer     <-chan struct{}
	analyzeAt time.Time
	// lookAt is when all statuses are read, again when the next one may be written after one could
	// not be, pause how long the next such wait is.
	lookAt, again time.Time
	pause         time.Duration
}

// follow analyzes each state and writes what is new, until ctx ends. What statuses have is read
// first, for somebody else may have led before, and from time to time.
func (w *writer) follow(ctx context.Context) error {
	first, newer, err := kube.FirstState(ctx, w.out)
	if err != nil {
		return nil
	}
	w.analyze(first, newer)
	for ctx.Err() == nil {
		now := time.Now()
		if w.isStale() && !now.Before(w.analyzeAt) {
			s, newer := w.out.State()
			w.analyze(s, newer)
		}
		if !now.Before(w.lookAt) && !now.Before(w.again) {
			err := w.look(ctx)
			w.failed(ctx, err)
			if err == nil {
				w.lookAt = now.Add(w.config.Look)
			}
			continue
		}
		if !now.Before(w.again) {
			if at, want, ok := w.work.next(); ok {
				w.failed(ctx, w.write(ctx, at, want))
				continue
			}
		}
		w.rest(ctx)
	}
	return nil
}

func (w *writer) isStale() bool {
	select {
	case <-w.newer:
		return true
	default:
		return false
	}
}

// analyze finds what there is to be said of a state.
func (w *writer) analyze(s *state.State, newer <-chan struct{}) {
	began := time.Now()
	want, errs := analyze(s, w.config.Revision)
	for _, err := range errs {
		w.complain("a row", err)
	}
	w.work.take(want)
	w.newer, w.analyzeAt = newer, time.Now().Add(max(w.config.Interval, share*time.Since(began)))
}

// rest waits until there is something to do.
func (w *writer) rest(ctx context.Context) {
	until, newer := w.lookAt, w.newer
	if until.Before(w.again) {
		until = w.again
	}
	if len(w.work.queue) > 0 && w.again.Before(until) {
		until = w.again
	}
	if w.isStale() {
		newer = nil
		if w.analyzeAt.Before(until) {
			until = w.analyzeAt
		}
	}
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-newer:
	case <-t.C:
	case <-ctx.Done():
	}
}

// failed says what went wrong, if anything did, and has the next attempt wait.
func (w *writer) failed(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		w.pause = shortest
	default:
		w.complain("a status", err)
		w.again = time.Now().Add(w.pause)
		w.pause = min(2*w.pause, longest)
	}
}

func (w *writer) complain(what string, err error) {
	if w.said.Allow(what, err, time.Now()) {
		w.out.Log(sdk.Warn, "findings are not all written into statuses; it is tried again", "of", what, "error", err.Error())
	}
}

// write writes the status of one object, if it is not as it should be. What can't be written for
// the object's own sake (it has gone, or is none of an API server's) is left; any other error
// brings it back into the queue.
func (w *writer) write(ctx context.Context, at ref, want []message) error {
	if err := w.pace.Wait(ctx); err != nil {
		return err
	}
	err := w.put(ctx, at, want)
	switch sdk.CodeOf(err) {
	case 0:
	case sdk.StoreNotFound, sdk.StoreUnsupported:
		w.work.has[at] = want // of files, or gone: look sees it when it comes
		return nil
	case sdk.StoreInvalid:
		w.work.has[at] = want // an API server that refuses it refuses it again
		w.complain(at.key, err)
		return nil
	case sdk.StoreConflict:
		w.work.again(at)
		return nil
	default:
		w.work.again(at)
		return fmt.Errorf("%s %s: %w", at.table, at.key, err)
	}
	if err != nil {
		w.work.again(at)
		return fmt.Errorf("%s %s: %w", at.table, at.key, err)
	}
	w.work.saw(at, want)
	return nil
}

func (w *writer) put(ctx context.Context, at ref, want []message) error {
	namespace, name := kinds.SplitKey(at.key)
	text, err := w.objects.Get(ctx, at.table, namespace, name)
	if err != nil {
		return err
	}
	o, err := read(text)
	if err != nil {
		return err
	}
	text, changed, err := o.with(want)
	if err == nil && changed {
		_, err = w.objects.UpdateStatus(ctx, at.table, text)
	}
	return err
}

// look reads the statuses of all objects.
func (w *writer) look(ctx context.Context) error {
	for _, table := range kinds.Tables() {
		if err := w.lookAtKind(ctx, table); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	return nil
}

func (w *writer) lookAtKind(ctx context.Context, table string) error {
	for next := ""; ; {
		objects, more, err := w.objects.List(ctx, table, "", sdk.Page{Page: next, Limit: page})
		switch sdk.CodeOf(err) {
		case sdk.StoreUnsupported, sdk.StoreNotFound:
			return nil // there is no such kind
		}
		if err != nil {
			return err
		}
		for _, text := range objects {
			o, err := read(text)
			if err != nil {
				return err
			}
			if at, ok := o.ref(table); ok {
				list, _ := o.has() // what is none is written anew
				w.work.saw(at, list)
			}
		}
		if next = more; next == "" {
			return nil
		}
	}
}
