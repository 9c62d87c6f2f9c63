package process

import (
	"sync"
	"sync/atomic"
)

// number is a child's process number. The kernel may give it to another process once the child was
// collected.
type number struct {
	pid   atomic.Int64 // 0: there is no child
	mu    sync.Mutex
	freed bool
}

// owned calls f with the number while it is the child's, and does nothing otherwise: then there is
// no child to do something to.
func (n *number) owned(f func(pid int) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.freed || n.pid.Load() == 0 {
		return nil
	}
	return f(int(n.pid.Load()))
}

// free calls f, after or in which the number is free, while nobody uses it.
func (n *number) free(f func(pid int)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.freed = true
	f(int(n.pid.Load()))
}
