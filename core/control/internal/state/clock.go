package state

import (
	"time"
)

// Clock is the time of what happens: when the lock was taken for it.
type Clock struct{ at time.Time }

// Set says what time it is.
func (k *Clock) Set(now time.Time) { k.at = now }

// Now is that time.
func (k *Clock) Now() time.Time { return k.at }
