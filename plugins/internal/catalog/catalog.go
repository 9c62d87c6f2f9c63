// Package catalog is what files of Istio's resources hold, for config sources that read files,
// wherever these are: of each object the last good version of the first file that has it, what has
// changed, and what is wrong. It does no I/O.
package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Catalog knows the contents of all files and what is served of them: of an object that several
// files have, the version of the first file in sorted order. It does no I/O.
type Catalog struct {
	files map[string]*contents
	// claims are the files that have an object, sorted.
	claims map[state.Name][]string
	served map[state.Name]*sdk.Row
	// rivals are the faults of objects that are served from another file.
	rivals   map[state.Name][]kinds.Fault
	faultSet kinds.FaultSet
	// touched are objects to look at again.
	touched map[state.Name]bool
}

// New returns an empty one.
func New() *Catalog {
	return &Catalog{
		files:    make(map[string]*contents),
		claims:   make(map[state.Name][]string),
		served:   make(map[state.Name]*sdk.Row),
		rivals:   make(map[state.Name][]kinds.Fault),
		touched:  make(map[state.Name]bool),
		faultSet: kinds.NewFaultSet(time.Now),
	}
}

// Offer says what a file holds now. What is faulty keeps the version that it had in that file
// before. place is how people call the file in sources and faults; mostly its name. It returns how
// many objects that are.
func (c *Catalog) Offer(file, place string, docs []kinds.Document) int {
	s := arrange(place, docs, c.files[file])
	c.put(file, s)
	return len(s.items)
}

// put gives a file new contents.
func (c *Catalog) put(file string, s *contents) {
	c.Drop(file)
	c.files[file] = s
	for name := range s.items {
		at, _ := slices.BinarySearch(c.claims[name], file)
		c.claims[name] = slices.Insert(c.claims[name], at, file)
		c.touched[name] = true
	}
}

// Fail keeps what a file offered, and says what is wrong with the file as a whole.
func (c *Catalog) Fail(file string, f kinds.Fault) {
	failed := &contents{faults: []kinds.Fault{f}}
	if s := c.files[file]; s != nil {
		failed.items = s.items
	}
	c.files[file] = failed
}

// Drop takes a file away.
func (c *Catalog) Drop(file string) {
	s := c.files[file]
	if s == nil {
		return
	}
	delete(c.files, file)
	for name := range s.items {
		if at, ok := slices.BinarySearch(c.claims[name], file); ok {
			c.claims[name] = slices.Delete(c.claims[name], at, at+1)
		}
		if len(c.claims[name]) == 0 {
			delete(c.claims, name)
		}
		c.touched[name] = true
	}
}

// Holds reports whether a file has objects.
func (c *Catalog) Holds(file string) bool {
	return c.files[file] != nil && len(c.files[file].items) > 0
}

// Changes is what to publish, by table.
type Changes struct {
	Upserts map[string][]*sdk.Row
	Deletes map[string][]string
	Faults  kinds.FaultChange
}

// Tables returns the names of the tables that change, sorted.
func (c *Changes) Tables() []string {
	names := slices.Collect(maps.Keys(c.Upserts))
	for table := range c.Deletes {
		names = append(names, table)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Changes returns what changed since the last call.
func (c *Catalog) Changes() *Changes {
	ch := &Changes{Upserts: make(map[string][]*sdk.Row), Deletes: make(map[string][]string)}
	for name := range c.touched {
		c.resolve(name, ch)
	}
	clear(c.touched)
	for _, rows := range ch.Upserts {
		slices.SortFunc(rows, byKey)
	}
	for _, keys := range ch.Deletes {
		slices.Sort(keys)
	}
	ch.Faults = c.faultSet.Show(c.Faults())
	return ch
}

func byKey(a, b *sdk.Row) int { return strings.Compare(a.Key, b.Key) }

// resolve chooses the version of an object that is served.
func (c *Catalog) resolve(name state.Name, ch *Changes) {
	row := c.choose(name)
	was := c.served[name]
	switch {
	case row == nil && was == nil:
	case row == nil:
		delete(c.served, name)
		ch.Deletes[name.Table] = append(ch.Deletes[name.Table], name.Key)
	case was == nil || !equal(row, was):
		c.served[name] = row
		ch.Upserts[name.Table] = append(ch.Upserts[name.Table], row)
	}
}

// choose returns the row of the first file that has a good one. Where files have the object, but
// none has a good version of it (it moved and was broken on the way), what is served stays.
func (c *Catalog) choose(name state.Name) *sdk.Row {
	delete(c.rivals, name)
	var winner *item
	for _, file := range c.claims[name] {
		it := c.files[file].items[name]
		switch {
		case winner != nil:
			c.rivals[name] = append(c.rivals[name], it.fault(kinds.CodeRival, "is already at %s, which is served; remove one of them", winner.place()))
		case it.row != nil:
			winner = it
		}
	}
	switch {
	case winner != nil:
		return winner.row
	case len(c.claims[name]) > 0:
		return c.served[name]
	}
	return nil
}

// Faults returns what is wrong with all files.
func (c *Catalog) Faults() []kinds.Fault {
	var list []kinds.Fault
	for _, s := range c.files {
		list = append(list, s.faults...)
	}
	for _, faults := range c.rivals {
		list = append(list, faults...)
	}
	return list
}

// Unreadable is the fault of a file that cannot be read.
func Unreadable(file string, err error) kinds.Fault {
	return kinds.Fault{File: file, Line: 1, Column: 1, Code: kinds.CodeFile, Message: fmt.Sprintf("cannot be read: %v", err)}
}
