package watch

import (
	"slices"
	"time"
)

// patience is how many settle times a batch waits for the last of its paths; what is quiet by then
// goes ahead.
const patience = 25

// pending gathers changed paths until they are quiet. It has no clock of its own.
type pending struct {
	settle time.Duration
	// first is when the batch began, latest its last event.
	first, latest time.Time
	last          map[string]time.Time
}

func (p *pending) add(path string, now time.Time) {
	if len(p.last) == 0 {
		p.first = now
		p.last = make(map[string]time.Time)
	}
	p.last[path], p.latest = now, now
}

// due returns when to take; false where nothing is pending.
func (p *pending) due() (time.Time, bool) {
	if len(p.last) == 0 {
		return time.Time{}, false
	}
	quiet, enough := p.latest.Add(p.settle), p.first.Add(patience*p.settle)
	if enough.Before(quiet) {
		return enough, true
	}
	return quiet, true
}

// drain returns the paths that are ready, sorted: all once there was no event for the settle time;
// after the patience those that have been quiet themselves.
func (p *pending) drain(now time.Time) []string {
	var ready []string
	quiet := now.Sub(p.latest) >= p.settle
	if !quiet && now.Sub(p.first) < patience*p.settle {
		return nil
	}
	for path, last := range p.last {
		if quiet || now.Sub(last) >= p.settle {
			ready = append(ready, path)
			delete(p.last, path)
		}
	}
	p.first = now
	slices.Sort(ready)
	return ready
}
