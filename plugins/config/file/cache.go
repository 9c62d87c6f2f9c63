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

// cache is all files as they were read last, and the catalog of what they hold.
type cache struct {
	config  Config
	log     func(level sdk.Level, text string, args ...any)
	checker *validation.Checker
	catalog *catalog.Catalog
	files   map[string]*file
	// emptied are files that had objects and were found empty, and since when: their writers may
	// just have begun; zero: it was said that they are.
	emptied map[string]time.Time
	work    work
}

// file is a file as it was read last.
type file struct {
	info   fs.FileInfo
	parsed *catalog.Parsed
	// cut: the file has lost its end since.
	cut bool
}

// work counts what was done.
type work struct{ reads, parses int }

// emptyFor is how many settle times a file must stay empty for that to be a fault.
const emptyFor = 50

func newCache(config Config, log func(sdk.Level, string, ...any)) *cache {
	return &cache{
		config: config, log: log, checker: validation.New(), catalog: catalog.New(),
		files: make(map[string]*file), emptied: make(map[string]time.Time),
	}
}

// compare brings the cache to what a scan found: it reads what is new or has another stat, and
// forgets what is gone.
func (c *cache) compare(found *tree.Found, now time.Time) {
	for path := range c.files {
		if found.Missing(path) {
			c.forget(path)
		}
	}
	var paths []string
	for path, info := range found.Files {
		if f := c.files[path]; f == nil || !same(f.info, info) {
			paths = append(paths, path)
		}
	}
	c.read(paths, now)
}

// read reads files, whatever their stat.
func (c *cache) read(paths []string, now time.Time) {
	slices.Sort(paths)
	jobs := make([]job, 0, len(paths))
	for _, path := range slices.Compact(paths) {
		j := job{path: path}
		if f := c.files[path]; f != nil {
			j.before = f.parsed
		}
		jobs = append(jobs, j)
	}
	reader := kinds.Reader{Check: c.checker.Check, Defaulted: c.checker.Defaulted, Secrets: true, Grants: true, Gateways: true, Order: c.config.Order()}
	for _, r := range loadAll(reader, jobs, c.config.MaxFile) {
		c.handle(r, now)
	}
}

// handle puts what reading a file gave into the catalog.
func (c *cache) handle(r loaded, now time.Time) {
	if r.info == nil && r.err == nil {
		c.forget(r.path)
		return
	}
	f := c.files[r.path]
	if f == nil {
		f = &file{}
		c.files[r.path] = f
	}
	f.info = r.info
	c.work.reads++
	switch {
	case r.err != nil:
		f.parsed = nil
		c.catalog.Fail(r.path, catalog.Unreadable(r.path, r.err))
	case r.empty && c.catalog.Holds(r.path):
		c.doubt(f, r.path, now)
	case r.parsed.Cut(f.parsed):
		f.cut = true
		c.catalog.Fail(r.path, catalog.Unreadable(r.path, errCut))
	default:
		delete(c.emptied, r.path)
		c.offer(f, r)
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
func (c *cache) doubt(f *file, path string, now time.Time) {
	switch since, known := c.emptied[path]; {
	case !known:
		c.emptied[path] = now
	case !since.IsZero() && now.Sub(since) >= emptyFor*c.config.Settle:
		c.emptied[path] = time.Time{}
		f.cut = true // so that the fault ends when the same content is back
		c.catalog.Fail(path, catalog.Unreadable(path, errEmptied))
	}
}

// offer gives the catalog what a file holds now.
func (c *cache) offer(f *file, r loaded) {
	if r.parsed == f.parsed && !f.cut {
		return
	}
	f.parsed, f.cut = r.parsed, false
	c.work.parses++
	for _, d := range r.foreign {
		c.log(sdk.Debug, "an object of another API is left alone", "object", d.Foreign, "place", kinds.Source(r.path, d.Line, d.Column))
	}
	c.catalog.Offer(r.path, r.path, r.parsed.Documents())
}

func (c *cache) forget(path string) {
	delete(c.files, path)
	delete(c.emptied, path)
	c.catalog.Drop(path)
}

// doubtful returns the files that are to be read again because they may have been empty for a
// moment only.
func (c *cache) doubtful() []string {
	var paths []string
	for path, since := range c.emptied {
		if !since.IsZero() {
			paths = append(paths, path)
		}
	}
	return paths
}

// deadline returns when doubt ends, if that is before another time (zero: never).
func (c *cache) deadline(other time.Time) time.Time {
	for _, since := range c.emptied {
		if end := since.Add(emptyFor * c.config.Settle); !since.IsZero() && (other.IsZero() || end.Before(other)) {
			other = end
		}
	}
	return other
}
