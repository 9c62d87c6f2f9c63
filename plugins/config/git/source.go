package git

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/catalog"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// source is a branch as a config source.
type source struct{ config Config }

// patience is how long a look at the branch may take.
const patience = 2 * time.Minute

// again is how soon another look follows the first one that fails.
const again = 2 * time.Second

// Run publishes what the branch's commit holds, and looks for another one, until ctx ends. What
// can't be looked at changes nothing.
func (s *source) Run(ctx context.Context, out sdk.Publisher) error {
	p := newPublication(s.config, out)
	r := repository{s.config}
	for failed := 0; ctx.Err() == nil; {
		looking, cancel := context.WithTimeout(ctx, patience)
		c, err := r.head(looking, p.commit)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if err := p.take(c, err); err != nil {
			return err
		}
		pause := s.config.Interval - rand.N(s.config.Interval/10) // replicas don't come all at once
		switch failed++; {
		case err == nil || errors.As(err, new(*unfit)):
			failed = 0
			sdk.Found(ctx)
		case failed == 1:
			pause = min(pause, again)
		default:
			sdk.Lost(ctx, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// publication is what was published of a branch.
type publication struct {
	config  Config
	out     sdk.Publisher
	checker *validation.Checker
	catalog *catalog.Catalog
	// commit was read last, and parsed are its files.
	commit string
	parsed map[string]*catalog.Parsed
	// away is what is wrong with the repository, as it is shown.
	away   kinds.FaultSet
	synced bool
}

func newPublication(c Config, out sdk.Publisher) *publication {
	return &publication{config: c, out: out, checker: validation.New(), catalog: catalog.New(), parsed: map[string]*catalog.Parsed{}, away: kinds.NewFaultSet(time.Now)}
}

// take publishes what a commit changes; nil: nothing has changed. Why it could not be read is
// shown.
func (p *publication) take(c *commit, err error) error {
	if err := p.show(err); err != nil || c == nil {
		return err
	}
	for path := range p.parsed {
		if _, there := c.files[path]; !there && c.refused[path] == nil {
			p.catalog.Drop(path)
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
	return p.publish()
}

// file takes a file's text.
func (p *publication) file(c *commit, path string) {
	at := place(path, c.hash)
	parsed, err := catalog.Parse(kinds.Reader{Check: p.checker.Check}, at, c.files[path], p.parsed[path], func(kinds.Document) {})
	switch {
	case err != nil:
		p.refuse(c, path, err)
	case parsed != p.parsed[path]:
		p.parsed[path] = parsed
		p.catalog.Offer(path, at, parsed.Documents())
	}
}

// refuse keeps what a file held, and says why it can't be read.
func (p *publication) refuse(c *commit, path string, err error) {
	p.parsed[path] = nil // so that the fault ends when the same text is back
	p.catalog.Fail(path, catalog.Unreadable(place(path, c.hash), err))
}

// place is what people look a file up by.
func place(path, hash string) string { return "git:" + path + "@" + short(hash) }

// publish publishes what has changed, and what is wrong with files.
func (p *publication) publish() error {
	ch := p.catalog.Settle()
	for _, table := range ch.Tables() {
		if err := p.out.Update(table, ch.Upserts[table], ch.Deletes[table]); err != nil {
			return err
		}
	}
	if err := p.tell(ch.Faults, "nothing is wrong with the branch's files any more"); err != nil || p.synced {
		return err
	}
	p.synced = true
	return p.out.Synced()
}

// show shows what is wrong with the repository; nil: nothing.
func (p *publication) show(err error) error {
	var faults []kinds.Fault
	if err != nil {
		f := kinds.Fault{
			File: "git:" + p.config.Repository, Code: kinds.CodeFile, Message: "the branch can't be read: " + strings.Join(strings.Fields(err.Error()), " "),
			Hint: "what was read last stays, and it is tried again",
		}
		if p.commit == "" {
			f.Hint = "it is tried again; the first list waits for it"
		}
		faults = append(faults, f)
	}
	return p.tell(p.away.Show(faults), "the branch can be read again")
}

// tell publishes faults and logs those that are new.
func (p *publication) tell(c kinds.FaultChange, healed string) error {
	for _, f := range c.New {
		p.out.Log(f.Level(), f.Error())
	}
	if c.Healed {
		p.out.Log(sdk.Info, healed, "repository", p.config.Repository)
	}
	if len(c.Upserts)+len(c.Deletes) == 0 {
		return nil
	}
	return p.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
}
