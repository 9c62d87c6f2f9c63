package environment

import "time"

// Debounce says when changes are to be committed: when none came for After, at most Max after the first. A pure state machine; the zero time is "never".
type Debounce struct {
	After, Max  time.Duration
	first, last time.Time
}

// Touch notes a change.
func (d *Debounce) Touch(now time.Time) {
	if d.first.IsZero() {
		d.first = now
	}
	d.last = now
}

// Due returns when to commit; the zero time if nothing waits.
func (d *Debounce) Due() time.Time {
	if d.first.IsZero() {
		return time.Time{}
	}
	due := d.last.Add(d.After)
	if latest := d.first.Add(d.Max); due.After(latest) {
		return latest
	}
	return due
}

// Reset forgets what waits.
func (d *Debounce) Reset() { d.first, d.last = time.Time{}, time.Time{} }
