package plugintest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// largeRows: a row that is larger than the core takes (Limits.row_bytes) fails alone. It is left
// out and named in a fault; all others are published, and the session goes on.
func (k *kit) largeRows() {
	if k.Source != nil {
		k.fill(3)
	}
	_, rows := k.publishing(k.target)
	if len(rows) == 0 {
		k.skip("it has published no row here")
	}
	target, large := k.target, map[string]bool{}
	target.rowBytes = limit(rows)
	for name, row := range rows {
		if len(row) > target.rowBytes {
			large[name] = true
			delete(rows, name)
		}
	}
	h, others := k.publishing(target)
	for _, d := range differences(rows, others) {
		h.failed("where a row may have %d bytes (Limits.row_bytes), of the rows that have less %s", target.rowBytes, d)
	}
	told := min(len(large), 32)
	h.wait(fmt.Sprintf("Done with a fault whose rows name one that is too large, for %d of %d", told, len(large)), func() bool {
		named := map[string]bool{}
		for _, f := range h.faults {
			for _, row := range f.Rows {
				if name := row.Table + " " + row.Key; large[name] {
					named[name] = true
				}
			}
		}
		return len(named) >= told
	})
	h.ping(h.nextID() + 1000)
}

// publishing starts a plugin that publishes, and returns what it has published.
func (k *kit) publishing(target Target) (*Harness, map[string]string) {
	h := StartTarget(k, target, k.Config)
	if h.Ready().Derives {
		k.feed(h, 3)
	} else {
		h.WaitSynced()
	}
	return h, k.published(h)
}

// limit is how large rows may be so that some of these are too large: but for the largest ones all
// fit, if any do.
func limit(rows map[string]string) int {
	sizes := map[int]bool{}
	for _, row := range rows {
		sizes[len(row)] = true
	}
	sorted := slices.Sorted(maps.Keys(sizes))
	if len(sorted) == 1 {
		return sorted[0] - 1
	}
	return sorted[len(sorted)-2]
}

// largeRowsRead: a row that is as large as rows may be is read, or is a fault, and is nothing more
// when it is small again.
func (k *kit) largeRowsRead() {
	h := k.start()
	world := k.world(h.Ready(), 3)
	h.Commit(world...)
	before := k.said(h)
	read := 0
	for _, t := range world {
		if len(t.Upserts) == 0 {
			continue
		}
		read++
		row := t.Upserts[0]
		padded := &sdk.Row{
			Key: row.Key, Source: row.Source, Created: row.Created, Labels: row.Labels, Payload: row.Payload,
			Annotations: map[string]string{"example.com/padding": strings.Repeat("x", session.MaxRow-row.Size()-256)},
		}
		h.waitLongDone(h.Send(Rows{Table: t.Table, Upserts: []*sdk.Row{padded}}))
		h.waitLongDone(h.Send(Rows{Table: t.Table, Upserts: []*sdk.Row{row}}))
	}
	if read == 0 {
		k.skip("it reads no table that the suite has rows of")
	}
	for _, d := range differences(before, k.said(h)) {
		h.failed("after a row was large (%d bytes), and is as before, the plugin says something else: %s", session.MaxRow, d)
	}
}
