package file

import (
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// library is all files as they were read last, and the catalog of what they hold.
type library struct {
	config  Config
	log     func(level sdk.Level, text string, args ...any)
	checker *validation.Checker
	catalog *catalog
	files   map[string]*volume
	// emptied are files that had objects and were found empty, and since when: their writers may just have begun.
	emptied map[string]time.Time
	work    work
}

// volume is a file as it was read last.
type volume struct {
	info   fs.FileInfo
	parsed *parsed
}

// work counts what was done.
type work struct{ reads, parses int }

// emptyFor is how many settle times a file must stay empty to count as emptied.
const emptyFor = 50

func newLibrary(c Config, log func(sdk.Level, string, ...any)) *library {
	return &library{
		config: c, log: log, checker: validation.New(), catalog: newCatalog(),
		files: make(map[string]*volume), emptied: make(map[string]time.Time),
	}
}

// compare brings the library to what a scan found: it reads what is new or has another stat, and forgets what is gone.
func (l *library) compare(found map[string]fs.FileInfo, now time.Time) {
	for path := range l.files {
		if found[path] == nil {
			l.forget(path)
		}
	}
	var paths []string
	for path, info := range found {
		if v := l.files[path]; v == nil || !same(v.info, info) {
			paths = append(paths, path)
		}
	}
	l.read(paths, now)
}

// read reads files, whatever their stat.
func (l *library) read(paths []string, now time.Time) {
	slices.Sort(paths)
	jobs := make([]job, 0, len(paths))
	for _, path := range slices.Compact(paths) {
		j := job{path: path}
		if v := l.files[path]; v != nil {
			j.before = v.parsed
		}
		jobs = append(jobs, j)
	}
	for _, r := range loadAll(kinds.Reader{Check: l.checker.Check}, jobs, l.config.MaxFile) {
		l.take(r, now)
	}
}

// take puts what reading a file gave into the catalog.
func (l *library) take(r loaded, now time.Time) {
	if r.info == nil && r.err == nil {
		l.forget(r.path)
		return
	}
	v := l.files[r.path]
	if v == nil {
		v = &volume{}
		l.files[r.path] = v
	}
	v.info = r.info
	l.work.reads++
	switch {
	case r.err != nil:
		v.parsed = nil
		l.catalog.fail(r.path, unreadable(r.path, r.err))
	case r.empty && l.maybeBegun(r.path, now):
	default:
		delete(l.emptied, r.path)
		l.shelve(v, r)
	}
}

// maybeBegun reports whether a file that is empty may be one whose writing has just begun.
func (l *library) maybeBegun(path string, now time.Time) bool {
	if !l.catalog.holds(path) {
		return false
	}
	if l.emptied[path].IsZero() {
		l.emptied[path] = now
	}
	return now.Sub(l.emptied[path]) < emptyFor*l.config.Settle
}

// shelve offers what a file holds now.
func (l *library) shelve(v *volume, r loaded) {
	if r.parsed == v.parsed {
		return
	}
	v.parsed = r.parsed
	l.work.parses++
	for _, d := range r.foreign {
		l.log(sdk.Debug, "an object of another API is left alone", "object", d.Foreign, "place", kinds.Source(r.path, d.Line, d.Column))
	}
	l.catalog.put(r.path, arrange(r.path, r.parsed.docs, l.catalog.shelves[r.path]))
}

func (l *library) forget(path string) {
	delete(l.files, path)
	delete(l.emptied, path)
	l.catalog.drop(path)
}

// doubtful returns the files that are to be read again because they may have been empty for a moment only.
func (l *library) doubtful() []string { return slices.Sorted(maps.Keys(l.emptied)) }

// deadline returns when doubt ends, if that is before another time (zero: never).
func (l *library) deadline(other time.Time) time.Time {
	for _, since := range l.emptied {
		if end := since.Add(emptyFor * l.config.Settle); other.IsZero() || end.Before(other) {
			other = end
		}
	}
	return other
}
