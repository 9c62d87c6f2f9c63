package plugintest

import (
	"fmt"
	"slices"
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
	n := h.many()
	h.mu.Unlock()
	if n != 0 {
		h.failed("%d rows of an empty source", n)
	}
}

// sourceDifferences: a change of one row is published as a change of a few.
func (k *kit) sourceDifferences() {
	const few = 1000
	k.fill(few)
	h := k.start()
	h.WaitSynced()
	h.waitCount(few)
	before := h.upserted()
	k.fill(few + 1)
	h.waitCount(few + 1)
	k.fill(few - 1)
	h.waitCount(few - 1)
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
	h.waitCount(2)
}

func (k *kit) sourceMany() {
	k.fill(k.Many)
	h := k.start()
	h.greet()
	h.waitLong("Synced", startTimeout, func() bool { return h.synced })
	h.waitCount(k.Many)
	k.fill(1)
	h.waitCount(1)
}

// many is how many there are of what the suite's Source changes: endpoints where they are
// published, otherwise rows of all tables. h.mu is held.
func (h *Harness) many() (rows int) {
	if slices.Contains(h.ready.Publishes, state.Endpoints) {
		return len(h.rows[state.Endpoints])
	}
	for _, table := range h.rows {
		rows += len(table)
	}
	return rows
}

// waitCount waits until there is a number of them.
func (h *Harness) waitCount(rows int) {
	h.t.Helper()
	h.waitLong(fmt.Sprintf("%d endpoints, or rows where no endpoints are published", rows), startTimeout, func() bool { return h.many() == rows })
}

// upserted is how many rows have been published, however often.
func (h *Harness) upserted() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.upserts
}
