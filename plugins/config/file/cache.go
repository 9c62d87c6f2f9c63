package file

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/tree"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// library is all files as they were read last, and the catalog of what they hold.
type library struct {
	config  Config
	log     func(level sdk.Level, text string, args ...any)
	checker *validation.Checker
	catalog *catalog.Catalog
	files   map[string]*volume
	// emptied are files that had objects and were found empty, and since when: their writers may
	// just have begun; zero: it was said that they are.
	emptied map[string]time.Time
	work    work
}

// volume is a file as it was read last.
type volume struct {
	info   fs.FileInfo
	parsed *catalog.Parsed
	// cut: the file has lost its end since.
	cut bool
}

// work counts what was done.
type work struct{ reads, parses int }

// emptyFor is how many settle times a file must stay empty for that to be a fault.
const emptyFor = 50

func newLibrary(c Config, log func(sdk.Level, string, ...any)) *library {
	return &library{
		config: c, log: log, checker: validation.New(), catalog: catalog.New(),
		files: make(map[string]*volume), emptied: make(map[string]time.Time),
	}
}

// compare brings the library to what a scan found: it reads what is new or has another stat, and
// forgets what is gone.
func (l *library) compare(found *tree.Found, now time.Time) {
	for path := range l.files {
		if found.Missing(path) {
			l.forget(path)
		}
	}
	var paths []string
	for path, info := range found.Files {
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
	for _, r := range loadAll(kinds.Reader{Check: l.checker.Check, Secrets: true, Grants: true}, jobs, l.config.MaxFile) {
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
		l.catalog.Fail(r.path, catalog.Unreadable(r.path, r.err))
	case r.empty && l.catalog.Holds(r.path):
		l.doubt(v, r.path, now)
	case r.parsed.Cut(v.parsed):
		v.cut = true
		l.catalog.Fail(r.path, catalog.Unreadable(r.path, errCut))
	default:
		delete(l.emptied, r.path)
		l.shelve(v, r)
	}
}

// errEmptied is what is wrong with a file of no bytes that had objects: somebody who takes them
// away removes them, or the file.
var errEmptied = errors.New("it is empty, and was not; write it again, remove it, or leave a comment in it if it is to hold nothing")

// errCut is what is wrong with a file that has lost its end: what is left may be valid, and mean
// something else.
var errCut = errors.New("it has become shorter, and ends amid a line, which it did not: write it again, or end it with a line break")

// doubt keeps what an empty file held: its writing may have just begun, or have failed. If it stays
// empty that is a fault.
func (l *library) doubt(v *volume, path string, now time.Time) {
	switch since, known := l.emptied[path]; {
	case !known:
		l.emptied[path] = now
	case !since.IsZero() && now.Sub(since) >= emptyFor*l.config.Settle:
		l.emptied[path] = time.Time{}
		v.parsed = nil // so that the fault ends when the same content is back
		l.catalog.Fail(path, catalog.Unreadable(path, errEmptied))
	}
}

// shelve offers what a file holds now.
func (l *library) shelve(v *volume, r loaded) {
	if r.parsed == v.parsed && !v.cut {
		return
	}
	v.parsed, v.cut = r.parsed, false
	l.work.parses++
	for _, d := range r.foreign {
		l.log(sdk.Debug, "an object of another API is left alone", "object", d.Foreign, "place", kinds.Source(r.path, d.Line, d.Column))
	}
	l.catalog.Offer(r.path, r.path, r.parsed.Documents())
}

func (l *library) forget(path string) {
	delete(l.files, path)
	delete(l.emptied, path)
	l.catalog.Drop(path)
}

// doubtful returns the files that are to be read again because they may have been empty for a
// moment only.
func (l *library) doubtful() []string {
	var paths []string
	for path, since := range l.emptied {
		if !since.IsZero() {
			paths = append(paths, path)
		}
	}
	return paths
}

// deadline returns when doubt ends, if that is before another time (zero: never).
func (l *library) deadline(other time.Time) time.Time {
	for _, since := range l.emptied {
		if end := since.Add(emptyFor * l.config.Settle); !since.IsZero() && (other.IsZero() || end.Before(other)) {
			other = end
		}
	}
	return other
}
