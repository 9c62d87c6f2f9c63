package kinds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// SortFaults sorts by place.
func SortFaults(list []Fault) {
	slices.SortFunc(list, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Error(), b.Error()))
	})
}

// Board is the faults that a config source has published.
type Board struct {
	shown map[string]Fault
}

// BoardChange is what to do to show other faults than before.
type BoardChange struct {
	// Upserts and Deletes are for FaultTable.
	Upserts []*pb.Row
	Deletes []string
	// New are faults that were not shown before, to be logged; sorted by place.
	New []Fault
	// Healed says that there were faults, and that there are none now.
	Healed bool
}

// Show replaces the faults that are shown. The list is sorted in place.
func (b *Board) Show(faults []Fault) BoardChange {
	var c BoardChange
	SortFaults(faults)
	now, told := keyed(faults), make(map[string]bool, len(b.shown))
	for _, f := range b.shown {
		told[f.Error()] = true
	}
	for key, f := range now {
		if was, ok := b.shown[key]; ok && was == f {
			continue
		}
		c.Upserts = append(c.Upserts, f.row(key))
		if !told[f.Error()] {
			c.New = append(c.New, f)
		}
	}
	for key := range b.shown {
		if _, ok := now[key]; !ok {
			c.Deletes = append(c.Deletes, key)
		}
	}
	SortFaults(c.New)
	slices.Sort(c.Deletes)
	slices.SortFunc(c.Upserts, func(x, y *pb.Row) int { return strings.Compare(x.Key, y.Key) })
	c.Healed = len(b.shown) > 0 && len(now) == 0
	b.shown = now
	return c
}

// keyed gives each fault its key: FILE:LINE:COLUMN, numbered where a place has several.
func keyed(faults []Fault) map[string]Fault {
	byKey, count := make(map[string]Fault, len(faults)), make(map[string]int)
	for _, f := range faults {
		key := f.Place()
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
