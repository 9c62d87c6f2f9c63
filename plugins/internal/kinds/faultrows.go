package kinds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// SortFaults sorts by place.
func SortFaults(list []Fault) {
	slices.SortFunc(list, func(a, b Fault) int {
		if order := cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)); order != 0 {
			return order
		}
		return strings.Compare(a.Error(), b.Error())
	})
}

// FaultSet is the faults that a plugin has published.
type FaultSet struct {
	// by ends the keys of a plugin that judges what others read.
	by    string
	shown map[string]Fault
	now   func() time.Time
}

// NewFaultSet returns an empty one; now says since when a fault is there.
func NewFaultSet(now func() time.Time) FaultSet { return FaultSet{now: now} }

// NewFaultSetBy is NewFaultSet for a plugin that judges what others read. Its faults have keys of
// their own, since of two plugins with one key the core would serve one.
func NewFaultSetBy(plugin string, now func() time.Time) FaultSet {
	return FaultSet{by: "@" + plugin, now: now}
}

// FaultChange is what to do to show other faults than before.
type FaultChange struct {
	// Upserts and Deletes are for FaultTable.
	Upserts []*pb.Row
	Deletes []string
	// New are faults that were not shown before, to be logged; sorted by place.
	New []Fault
	// Healed says that there were errors, and that there are none now.
	Healed bool
}

// Show replaces the faults that are shown. The list is sorted in place.
func (b *FaultSet) Show(faults []Fault) FaultChange {
	var c FaultChange
	SortFaults(faults)
	now := keyed(faults, b.by)
	var changed []string
	for key, f := range now {
		if was, ok := b.shown[key]; ok && was.identity() == f.identity() {
			now[key] = was // its place is its key
		} else {
			changed = append(changed, key)
		}
	}
	b.date(now, changed, &c)
	for key := range b.shown {
		if _, ok := now[key]; !ok {
			c.Deletes = append(c.Deletes, key)
		}
	}
	SortFaults(c.New)
	slices.Sort(c.Deletes)
	slices.SortFunc(c.Upserts, func(x, y *pb.Row) int { return strings.Compare(x.Key, y.Key) })
	c.Healed = anyError(b.shown) && !anyError(now)
	b.shown = now
	return c
}

// date says since when faults are there that were not shown, or not at their place, and which of
// them nobody was told of. It costs a look at all that are shown if there are any.
func (b *FaultSet) date(now map[string]Fault, changed []string, c *FaultChange) {
	if len(changed) == 0 {
		return
	}
	since, told := make(map[Fault]time.Time, len(b.shown)), make(map[string]bool, len(b.shown))
	for _, f := range b.shown {
		since[f.identity()], told[f.Error()] = f.Since, true
	}
	for _, key := range changed {
		f := now[key]
		f.Since = since[f.identity()]
		if f.Since.IsZero() {
			f.Since = b.now()
		}
		now[key] = f
		c.Upserts = append(c.Upserts, f.row(key))
		if !told[f.Error()] {
			c.New = append(c.New, f)
		}
	}
}

// identity is what makes a fault the same one when lines move.
func (f Fault) identity() Fault {
	f.Line, f.Column, f.Since = 0, 0, time.Time{}
	return f
}

func anyError(faults map[string]Fault) bool {
	for _, f := range faults {
		if f.Severity == finding.Error {
			return true
		}
	}
	return false
}

// keyed gives each fault its key: FILE:LINE:COLUMN and by, numbered where a place has several.
func keyed(faults []Fault, by string) map[string]Fault {
	byKey, count := make(map[string]Fault, len(faults)), make(map[string]int)
	for _, f := range faults {
		key := f.Place() + by
		count[key]++
		if n := count[key]; n > 1 {
			key = fmt.Sprintf("%s#%d", key, n)
		}
		byKey[key] = f
	}
	return byKey
}

func (f Fault) row(key string) *pb.Row {
	// A struct of strings and numbers always has a JSON form.
	payload, _ := json.Marshal(f)
	return &pb.Row{Key: key, Source: f.Place(), Payload: payload}
}
