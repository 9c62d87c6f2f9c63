package file

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// catalog knows the shelves of all files and what is served of them: of an object that several files have, the version of
// the first file in sorted order. It does no I/O.
type catalog struct {
	shelves map[string]*shelf
	// claims are the files that have an object, sorted.
	claims map[state.Name][]string
	served map[state.Name]*sdk.Row
	// rivals are the faults of objects that are served from another file.
	rivals map[state.Name][]kinds.Fault
	board  kinds.Board
	// touched are objects to look at again.
	touched map[state.Name]bool
}

func newCatalog() *catalog {
	return &catalog{
		shelves: make(map[string]*shelf),
		claims:  make(map[state.Name][]string),
		served:  make(map[state.Name]*sdk.Row),
		rivals:  make(map[state.Name][]kinds.Fault),
		touched: make(map[state.Name]bool),
		board:   kinds.NewBoard(time.Now),
	}
}

// put gives a file a new shelf.
func (c *catalog) put(file string, s *shelf) {
	c.drop(file)
	c.shelves[file] = s
	for name := range s.items {
		at, _ := slices.BinarySearch(c.claims[name], file)
		c.claims[name] = slices.Insert(c.claims[name], at, file)
		c.touched[name] = true
	}
}

// fail keeps what a file offered, and says what is wrong with the file as a whole.
func (c *catalog) fail(file string, f kinds.Fault) {
	failed := &shelf{faults: []kinds.Fault{f}}
	if s := c.shelves[file]; s != nil {
		failed.items = s.items
	}
	c.shelves[file] = failed
}

// drop takes a file away.
func (c *catalog) drop(file string) {
	s := c.shelves[file]
	if s == nil {
		return
	}
	delete(c.shelves, file)
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

// holds reports whether a file has objects.
func (c *catalog) holds(file string) bool {
	return c.shelves[file] != nil && len(c.shelves[file].items) > 0
}

// changes is what to publish, by table.
type changes struct {
	upserts map[string][]*sdk.Row
	deletes map[string][]string
	faults  kinds.BoardChange
}

// tables returns the names of the tables that change, sorted.
func (c *changes) tables() []string {
	names := slices.Collect(maps.Keys(c.upserts))
	for table := range c.deletes {
		names = append(names, table)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// settle returns what changed since the last call.
func (c *catalog) settle() *changes {
	ch := &changes{upserts: make(map[string][]*sdk.Row), deletes: make(map[string][]string)}
	for name := range c.touched {
		c.resolve(name, ch)
	}
	clear(c.touched)
	for _, rows := range ch.upserts {
		slices.SortFunc(rows, byKey)
	}
	for _, keys := range ch.deletes {
		slices.Sort(keys)
	}
	ch.faults = c.board.Show(c.allFaults())
	return ch
}

func byKey(a, b *sdk.Row) int { return strings.Compare(a.Key, b.Key) }

// resolve chooses the version of an object that is served.
func (c *catalog) resolve(name state.Name, ch *changes) {
	row := c.choose(name)
	was := c.served[name]
	switch {
	case row == nil && was == nil:
	case row == nil:
		delete(c.served, name)
		ch.deletes[name.Table] = append(ch.deletes[name.Table], name.Key)
	case was == nil || !equal(row, was):
		c.served[name] = row
		ch.upserts[name.Table] = append(ch.upserts[name.Table], row)
	}
}

// choose returns the row of the first file that has a good one. Where files have the object, but none has a good version of
// it (it moved and was broken on the way), what is served stays.
func (c *catalog) choose(name state.Name) *sdk.Row {
	delete(c.rivals, name)
	var winner *item
	for _, file := range c.claims[name] {
		it := c.shelves[file].items[name]
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

// allFaults returns what is wrong with all files.
func (c *catalog) allFaults() []kinds.Fault {
	var list []kinds.Fault
	for _, s := range c.shelves {
		list = append(list, s.faults...)
	}
	for _, faults := range c.rivals {
		list = append(list, faults...)
	}
	return list
}
