package environment

import "time"

// Debounce says when changes are to be committed: when none came for After, at most Max after the
// first. A source that changes things without a pause keeps what others changed waiting no longer
// than others times After. A pure state machine; the zero time is "never".
type Debounce struct {
	After, Max  time.Duration
	first, last time.Time
	sources     map[string]span
}

// span is when a source changed something for the first and the last time.
type span struct{ first, last time.Time }

// others is how many times After a source's changes wait for those of other sources to end, which
// may belong together.
const others = 5

// Touch notes a change by a source.
func (d *Debounce) Touch(source string, now time.Time) {
	if d.first.IsZero() {
		d.first, d.sources = now, map[string]span{}
	}
	d.last = now
	s := d.sources[source]
	if s.first.IsZero() {
		s.first = now
	}
	s.last = now
	d.sources[source] = s
}

// Due returns when to commit; the zero time if nothing waits.
func (d *Debounce) Due() time.Time {
	if d.first.IsZero() {
		return time.Time{}
	}
	due := earlier(d.last.Add(d.After), d.first.Add(d.Max))
	for _, s := range d.sources {
		due = earlier(due, later(s.last.Add(d.After), s.first.Add(others*d.After)))
	}
	return due
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Reset forgets what waits.
func (d *Debounce) Reset() { d.first, d.last, d.sources = time.Time{}, time.Time{}, nil }
