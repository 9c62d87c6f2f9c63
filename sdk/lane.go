package sdk

import (
	"context"
	"sync"
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

// run runs jobs until ctx ends.
func (l *lane) run(ctx context.Context) {
	for ctx.Err() == nil {
		if job := l.take(); job != nil {
			job()
			continue
		}
		select {
		case <-l.more:
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
