package git

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/remote"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// source is a branch as a config source.
type source struct {
	config Config
	// patience is how long a look at the branch may take; 0: usual.
	patience time.Duration
}

const usual = 2 * time.Minute

// Run publishes what the branch's commit holds, and looks for another one, until ctx ends. What
// can't be looked at changes nothing.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	p := newPublication(s.config, out)
	r := repository{s.config}
	return remote.Follow(ctx, s.config.Interval, cmp.Or(s.patience, usual), func(ctx context.Context) (take func() error, away error) {
		c, err := r.head(ctx, p.commit)
		take = func() error { return p.handle(c, err) }
		if errors.As(err, new(*unfit)) {
			return take, nil
		}
		return take, err
	})
}

// publication is what was published of a branch.
type publication struct {
	*remote.Publication
	config  Config
	out     sdk.Publisher
	checker *validation.Checker
	// commit was read last, and parsed are its files.
	commit string
	parsed map[string]*catalog.Parsed
}

func newPublication(c Config, out sdk.Publisher) *publication {
	return &publication{
		Publication: remote.NewPublication(out, remote.Names{
			Place: "git:" + c.Repository, Whole: "the branch", Parts: "the branch's files", Fields: []any{"repository", c.Repository},
		}),
		config: c, out: out, checker: validation.New(), parsed: map[string]*catalog.Parsed{},
	}
}

// handle publishes what a commit changes; nil: nothing has changed. Why it could not be read is
// shown.
func (p *publication) handle(c *commit, err error) error {
	if err := p.Show(err); err != nil || c == nil {
		return err
	}
	for path := range p.parsed {
		if _, there := c.files[path]; !there && c.refused[path] == nil {
			p.Catalog.Drop(path)
			delete(p.parsed, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(c.files)) {
		p.file(c, path)
	}
	for path, err := range c.refused {
		p.refuse(c, path, err)
	}
	p.checker.Rest()
	debug.FreeOSMemory()
	p.out.Log(sdk.Info, "a commit is read", "commit", c.hash, "files", len(c.files))
	p.commit = c.hash
	return p.Publish()
}

// file takes a file's text.
func (p *publication) file(c *commit, path string) {
	at := place(path, c.hash)
	parsed, err := catalog.Parse(kinds.Reader{Check: p.checker.Check, Defaulted: p.checker.Defaulted, Grants: true, Gateways: true, Order: p.config.Order()},
		at, c.files[path], p.parsed[path], func(kinds.Document) {})
	switch {
	case err != nil:
		p.refuse(c, path, err)
	case parsed != p.parsed[path]:
		p.parsed[path] = parsed
		p.Catalog.Offer(path, at, parsed.Documents())
	}
}

// refuse keeps what a file held, and says why it can't be read.
func (p *publication) refuse(c *commit, path string, err error) {
	p.parsed[path] = nil // so that the fault ends when the same text is back
	p.Catalog.Fail(path, catalog.Unreadable(place(path, c.hash), err))
}

// place is what people look a file up by.
func place(path, hash string) string { return "git:" + path + "@" + short(hash) }
