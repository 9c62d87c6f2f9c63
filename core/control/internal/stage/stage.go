// Package stage orders plugins: sources first, then those that derive rows from rows, each after
// what it reads, then generators.
package stage

import (
	"fmt"
	"slices"
	"strings"
)

// Plugin is what the order depends on.
type Plugin struct {
	Name      string
	Reads     []Read
	Publishes []string
	// Derives: its rows belong to the revision that caused them. Others publish when they like, and
	// nobody waits for them.
	Derives bool
}

// Read is a table that a plugin reads; Sources leaves out what was derived.
type Read struct {
	Table   string
	Sources bool
}

// CycleError names derivers that wait for each other.
type CycleError struct {
	// Path begins and ends with the same plugin.
	Path []string
	// Tables lie between the plugins of Path.
	Tables []string
}

// Error implements error.
func (e *CycleError) Error() string {
	var b strings.Builder
	for i, name := range e.Path {
		if i > 0 {
			fmt.Fprintf(&b, " -> (%s) -> ", e.Tables[i-1])
		}
		b.WriteString(name)
	}
	return fmt.Sprintf("plugins derive from each other in a circle: %s; let one of them read TABLE@sources", b.String())
}

// Levels returns the level of each deriver, from 0; a deriver's level is above those of all
// derivers whose tables it reads.
func Levels(plugins []Plugin) (map[string]int, error) {
	w := &walk{by: map[string][]int{}, plugins: plugins, levels: map[string]int{}}
	for i, p := range plugins {
		if p.Derives {
			for _, t := range p.Publishes {
				w.by[t] = append(w.by[t], i)
			}
		}
	}
	for i, p := range plugins {
		if p.Derives {
			if _, err := w.level(i); err != nil {
				return nil, err
			}
		}
	}
	return w.levels, nil
}

type walk struct {
	plugins []Plugin
	by      map[string][]int // derivers by the tables that they publish
	levels  map[string]int
	path    []int
	tables  []string
}

func (w *walk) level(i int) (int, error) {
	p := w.plugins[i]
	if l, ok := w.levels[p.Name]; ok {
		return l, nil
	}
	if at := slices.Index(w.path, i); at >= 0 {
		return 0, w.cycle(at, i)
	}
	w.path = append(w.path, i)
	defer func() { w.path = w.path[:len(w.path)-1] }()
	level := 0
	for _, r := range p.Reads {
		if r.Sources {
			continue
		}
		for _, j := range w.by[r.Table] {
			w.tables = append(w.tables, r.Table)
			l, err := w.level(j)
			w.tables = w.tables[:len(w.tables)-1]
			if err != nil {
				return 0, err
			}
			level = max(level, l+1)
		}
	}
	w.levels[p.Name] = level
	return level, nil
}

// cycle describes the circle that closes when the plugin at w.path[at] is met again. Reading goes
// against the flow of rows.
func (w *walk) cycle(at, again int) error {
	e := &CycleError{}
	for _, i := range append(slices.Clone(w.path[at:]), again) {
		e.Path = append(e.Path, w.plugins[i].Name)
	}
	e.Tables = append(e.Tables, w.tables[at:]...)
	slices.Reverse(e.Path)
	slices.Reverse(e.Tables)
	return e
}
