// Package serial runs jobs one after the other.
package serial

import (
	"context"
	"sync"
	"time"
)

// Queue runs jobs one after the other. Credit bounds how many wait: a message's credit is given
// back when its job is done.
type Queue struct {
	mu   sync.Mutex
	jobs []func()
	more chan struct{}
	// Rest, if it is there, is run whenever the queue comes to rest.
	Rest func()
}

// New returns one without jobs.
func New() *Queue { return &Queue{more: make(chan struct{}, 1)} }

// Add puts a job behind those that wait.
func (q *Queue) Add(job func()) {
	q.mu.Lock()
	q.jobs = append(q.jobs, job)
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *Queue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.jobs) == 0 {
		return nil
	}
	job := q.jobs[0]
	q.jobs[0] = nil
	q.jobs = q.jobs[1:]
	return job
}

// restAfter is how long a queue must have had nothing to do after jobs to be at rest.
const restAfter = 10 * time.Second

// Run runs jobs until ctx ends.
func (q *Queue) Run(ctx context.Context) {
	quiet := time.NewTimer(restAfter)
	defer quiet.Stop()
	for ctx.Err() == nil {
		if job := q.next(); job != nil {
			job()
			quiet.Reset(restAfter)
			continue
		}
		select {
		case <-q.more:
		case <-quiet.C:
			if q.Rest != nil {
				q.Rest()
			}
		case <-ctx.Done():
		}
	}
}
