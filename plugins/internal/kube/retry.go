package kube

import "time"

// Retry says when a loop tries again what it could not do: after a second, then after twice as long
// each time, up to a minute. The zero value is that of a loop that has not failed.
type Retry struct{ pause time.Duration }

// After returns a channel that receives when it is time to try again; nil if all is done, after
// which the pauses begin anew.
func (r *Retry) After(done bool) <-chan time.Time {
	const shortest, longest = time.Second, time.Minute
	if done {
		r.pause = 0
		return nil
	}
	r.pause = min(max(2*r.pause, shortest), longest)
	return time.After(r.pause)
}
