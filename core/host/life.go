package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// farewell is how long a process whose session ended may take to be gone, so that its exit can be
// told, before it is killed.
const farewell = time.Second

// errKilled is that a plugin which was asked to end had to be killed.
var errKilled = errors.New("it did not end by itself")

// life is one run of a plugin's process.
type life struct {
	slot    *slot
	running Running
	link    *session.Core
	// stopBy is when it must be gone; set once it was asked to end.
	stopBy time.Time
}

// serve hands the session to the core until it ends and, when ctx ends, asks the plugin to end.
func (l *life) serve(ctx context.Context, sessions Sessions, inst *Instance) error {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- sessions.Serve(inner, inst) }()
	late, stop := l.late(inst)
	defer stop()
	var err error
	patience := farewell
	select {
	case err := <-ended:
		if errors.Is(err, ErrAsleep) {
			l.stopBy = time.Now().Add(l.slot.entry.Limits.Stop)
		}
		return err
	case <-l.running.Done():
		// What it said before it died is still taken in.
	case err = <-late:
		patience = 0
	case <-ctx.Done():
		l.slot.move(Draining, nil, nil)
		patience = l.slot.entry.Limits.Stop
		l.stopBy = time.Now().Add(patience)
		_ = l.link.Send(inner, &pb.FromCore{Drain: &pb.Drain{}})
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
	}
	cancel()
	_ = l.link.Close()
	<-ended
	return err
}

// late gives an error when a source has not synced in time. What derives or generates waits for
// others, so it is never late.
func (l *life) late(inst *Instance) (late <-chan error, stop func() bool) {
	c := make(chan error, 1)
	k, limit := inst.Ready.Kind, l.slot.entry.Limits.Sync
	if inst.Ready.Derives || !k.Source() {
		return c, func() bool { return true }
	}
	t := time.AfterFunc(limit, func() {
		if l.slot.owesList() {
			c <- session.Crossed("sync", "its first full list is not in within %v (limits.sync)", limit)
		}
	})
	return c, t.Stop
}

// end sees the process off, and makes of why the session ended why the life ended.
func (l *life) end(err error) error {
	cause := l.link.Err()
	_ = l.link.Close()
	gone := err == nil || errors.Is(err, io.EOF) || cause != nil && errors.Is(err, cause)
	byItself := gone && l.stopBy.IsZero() && l.goneSoon()
	l.running.Stop(max(0, time.Until(l.stopBy)))
	exit := l.running.Wait()
	switch {
	case !l.stopBy.IsZero() && !time.Now().Before(l.stopBy):
		if errors.Is(err, ErrAsleep) { // on a busy machine: no failure, least of all of the core's start
			l.slot.log.Warn("plugin had to be killed as it fell asleep", "after", l.slot.entry.Limits.Stop, "limit", "limits.stop")
			return err
		}
		return session.Crossed("stop", "%w within %v (limits.stop)", errKilled, l.slot.entry.Limits.Stop)
	case !gone:
		return err
	case byItself:
		why := fmt.Errorf("its process ended by itself (%s)", exit)
		if limit := session.CrossedLimit(cause); limit != "" {
			return &session.LimitError{Limit: limit, Err: why}
		}
		return why
	case err == nil || errors.Is(err, io.EOF):
		return errors.New("it ended its session")
	}
	return err
}

// goneSoon reports whether the process ends without being stopped.
func (l *life) goneSoon() bool {
	select {
	case <-l.running.Done():
		return true
	case <-time.After(farewell):
		return false
	}
}
