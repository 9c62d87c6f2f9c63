package sdk

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// heartbeat is how often a sign of life is sent while author code runs.
const heartbeat = time.Second

// lane runs jobs one after the other. Credit bounds how many wait: a message's credit is given back when its job is done.
type lane struct {
	mu   sync.Mutex
	jobs []func()
	more chan struct{}
	// rest, if it is there, is run whenever the lane comes to rest.
	rest func()
}

func newLane() *lane { return &lane{more: make(chan struct{}, 1)} }

func (l *lane) add(job func()) {
	l.mu.Lock()
	l.jobs = append(l.jobs, job)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *lane) take() func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.jobs) == 0 {
		return nil
	}
	job := l.jobs[0]
	l.jobs[0] = nil
	l.jobs = l.jobs[1:]
	return job
}

// freed says that memory was freed which the process may give back.
var freed atomic.Bool

// restAfter is how long a lane must have had nothing to do after jobs to be at rest.
const restAfter = 10 * time.Second

// run runs jobs until ctx ends.
func (l *lane) run(ctx context.Context) {
	quiet := time.NewTimer(restAfter)
	defer quiet.Stop()
	for ctx.Err() == nil {
		if job := l.take(); job != nil {
			job()
			quiet.Reset(restAfter)
			continue
		}
		select {
		case <-l.more:
		case <-quiet.C:
			if l.rest != nil {
				l.rest()
			}
		case <-ctx.Done():
		}
	}
}

// alive sends signs of life while f runs. They say that the process works, not that f will end: the core's deadlines for a
// revision and a call are what catches author code that hangs.
func (t *talk) alive(ctx context.Context, f func()) {
	stop := make(chan struct{})
	var beats sync.WaitGroup
	beats.Go(func() {
		tick := time.NewTicker(heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = t.link.Send(ctx, &pb.FromPlugin{Progress: &pb.Progress{}})
			case <-stop:
				return
			}
		}
	})
	defer beats.Wait()
	defer close(stop)
	f()
}
