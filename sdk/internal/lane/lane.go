// Package lane runs jobs one after the other.
package lane

import (
	"context"
	"sync"
	"time"
)

// Lane runs jobs one after the other. Credit bounds how many wait: a message's credit is given back when its job is done.
type Lane struct {
	mu   sync.Mutex
	jobs []func()
	more chan struct{}
	// Rest, if it is there, is run whenever the lane comes to rest.
	Rest func()
}

// New returns one without jobs.
func New() *Lane { return &Lane{more: make(chan struct{}, 1)} }

// Add puts a job behind those that wait.
func (l *Lane) Add(job func()) {
	l.mu.Lock()
	l.jobs = append(l.jobs, job)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *Lane) take() func() {
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

// restAfter is how long a lane must have had nothing to do after jobs to be at rest.
const restAfter = 10 * time.Second

// Run runs jobs until ctx ends.
func (l *Lane) Run(ctx context.Context) {
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
			if l.Rest != nil {
				l.Rest()
			}
		case <-ctx.Done():
		}
	}
}
