package plugintest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func sourceCases() []suiteCase {
	return []suiteCase{
		{"whole state", (*kit).wholeState},
		{"empty source", (*kit).emptySource},
		{"differences", (*kit).sourceDifferences},
		{"flapping", (*kit).sourceFlapping},
		{"many endpoints", (*kit).sourceMany},
		{"large rows", (*kit).largeRows},
	}
}

// fill makes the source have a number of rows.
func (k *kit) fill(rows int) {
	if k.Source == nil {
		k.skip("nobody said how the source is changed")
	}
	if err := k.Source(rows); err != nil {
		k.Fatalf("making the source have %d rows: %v", rows, err)
	}
}

// wholeState: Synced comes once, after rows of declared tables with the keys that the contract
// says.
func (k *kit) wholeState() {
	h := k.start()
	h.WaitSynced()
	k.published(h)
}

// emptySource: a source with nothing in it is synced all the same.
func (k *kit) emptySource() {
	k.fill(0)
	h := k.start()
	h.WaitSynced()
	h.mu.Lock()
	empty, has := h.hasMany(0), h.counted()
	h.mu.Unlock()
	if !empty {
		h.failed("of an empty source %s", has)
	}
}

// sourceDifferences: a change of one row is published as a change of a few.
func (k *kit) sourceDifferences() {
	const few = 1000
	k.fill(few)
	h := k.start()
	h.WaitSynced()
	k.waitCount(h, few)
	before := h.upserted()
	k.fill(few + 1)
	k.waitCount(h, few+1)
	k.fill(few - 1)
	k.waitCount(h, few-1)
	if n := h.upserted() - before; n > few/2 {
		h.failed("one row came, two went, and %d were published: a source publishes what changes", n)
	}
}

// sourceFlapping: what is there in the end is what is published in the end.
func (k *kit) sourceFlapping() {
	k.fill(1)
	h := k.start()
	h.WaitSynced()
	for i := range 20 {
		k.fill(1 + i%3)
		time.Sleep(5 * time.Millisecond)
	}
	k.fill(2)
	k.waitCount(h, 2)
}

func (k *kit) sourceMany() {
	k.fill(k.Many)
	h := k.start()
	h.greet()
	h.waitLong("Synced", startTimeout, func() bool { return h.synced })
	k.waitCount(h, k.Many)
	k.fill(1)
	k.waitCount(h, 1)
}

// hasMany reports whether there is a number of what the suite's Source changes: endpoints where
// they are published, otherwise rows, in all or of the table that has most. h.mu is held.
func (h *Harness) hasMany(rows int) bool {
	if slices.Contains(h.ready.Publishes, state.Endpoints) {
		return len(h.rows[state.Endpoints]) == rows
	}
	sum, most := 0, 0
	for _, table := range h.rows {
		sum, most = sum+len(table), max(most, len(table))
	}
	return sum == rows || most == rows
}

// counted says how many rows the plugin has, by table. h.mu is held.
func (h *Harness) counted() string {
	sum := 0
	var of []string
	for _, table := range slices.Sorted(maps.Keys(h.rows)) {
		if n := len(h.rows[table]); n > 0 {
			sum += n
			of = append(of, fmt.Sprintf("%d %s", n, table))
		}
	}
	if sum == 0 {
		return "the plugin has no rows"
	}
	return fmt.Sprintf("the plugin has %d (%s)", sum, strings.Join(of, ", "))
}

// usualLag is how long a plugin may take to begin with what has changed in its source.
const usualLag = 15 * time.Second

// waitCount waits until there is a number of them. It ends as soon as the plugin has been silent
// for the suite's Lag, and has another number.
func (k *kit) waitCount(h *Harness, rows int) {
	h.t.Helper()
	what := "endpoints"
	if !slices.Contains(h.ready.Publishes, state.Endpoints) {
		what = "rows (in all, or in the table that has most)"
	}
	lag := h.patient(cmp.Or(k.Lag, usualLag))
	if rows > 10_000 {
		lag *= 4 // much is read before the first row
	}
	before, since := -1, time.Now()
	h.waitLong(fmt.Sprintf("%d %s", rows, what), startTimeout, func() bool {
		if h.hasMany(rows) {
			return true
		}
		if h.upserts+h.deletes != before {
			before, since = h.upserts+h.deletes, time.Now()
		}
		if silent := time.Since(since); silent > lag {
			h.gaveUp = fmt.Sprintf("wanted %d %s; %s, and has published nothing more for %s (Suite.Lag)", rows, what, h.counted(), silent.Round(time.Second))
		}
		return false
	})
}

// upserted is how many rows have been published, however often.
func (h *Harness) upserted() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.upserts
}
