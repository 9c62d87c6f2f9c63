package kube

import (
	"sync"
	"time"
)

// Changes are keys of what has changed since it was taken last. Informers add, one loop takes.
type Changes[K comparable] struct {
	mu   sync.Mutex
	keys map[K]bool
	wake chan struct{}
}

// NewChanges returns none.
func NewChanges[K comparable]() *Changes[K] {
	return &Changes[K]{keys: map[K]bool{}, wake: make(chan struct{}, 1)}
}

// Add notes keys.
func (c *Changes[K]) Add(keys ...K) {
	c.mu.Lock()
	for _, k := range keys {
		c.keys[k] = true
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Drain returns what was noted since, and forgets it.
func (c *Changes[K]) Drain() map[K]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.keys
	c.keys = map[K]bool{}
	return out
}

// Some receives once there may be something to take.
func (c *Changes[K]) Some() <-chan struct{} { return c.wake }

// manyKinds is how many kinds of errors a LogLimiter remembers; one more, and it forgets them all.
const manyKinds = 1000

// LogLimiter says how often an error is logged that comes again and again. The zero value is ready
// for use.
type LogLimiter struct {
	mu   sync.Mutex
	last map[string]string
	at   map[string]time.Time
}

// Allow reports whether an error of a kind is new, or was said a minute ago.
func (c *LogLimiter) Allow(kind string, err error, now time.Time) bool {
	const again = time.Minute
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil || len(c.last) >= manyKinds && c.last[kind] == "" {
		c.last, c.at = map[string]string{}, map[string]time.Time{}
	}
	if c.last[kind] == err.Error() && now.Sub(c.at[kind]) < again {
		return false
	}
	c.last[kind], c.at[kind] = err.Error(), now
	return true
}
