package swap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// historyLength is how many changes of a plugin are kept.
const historyLength = 10

// open notes the beginning of a change.
func (s *Swapper) open(ctx context.Context, what string, last, e *manifest.Entry, o Options) *Change {
	name := e.Name
	c := &Change{Plugin: name, What: what, From: describe(last), To: describe(e), At: time.Now()}
	c.by, c.audited = context.WithoutCancel(ctx), toAudit(what, last, e, o)
	switch what {
	case doAdd:
		c.From = ""
	case doRemove:
		c.To = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ofLocked(name)
	p.changes = append(p.changes, c)
	if n := len(p.changes); n > historyLength {
		p.changes = slices.Delete(p.changes, 0, n-historyLength)
	}
	return c
}

func (s *Swapper) last(name string) *Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.ofLocked(name).changes
	return all[len(all)-1]
}

// step takes a change to a state.
func (c *Change) step(s *Swapper, to State, reasons ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(c.State.next(), to) {
		s.cfg.Log.Error("a change of a plugin went astray", "plugin", c.Plugin, "from", c.State, "to", to)
	}
	c.State = to
	c.Reasons = append(c.Reasons, reasons...)
	if to.Over() || to == Switched {
		if c.WarmUntil.IsZero() {
			c.Took = time.Since(c.At)
		}
		s.cfg.Ended(c.Plugin, string(to))
	}
	s.audit(c, to, reasons)
	log := s.cfg.Log.With("plugin", c.Plugin, "what", c.What, "to", c.To)
	switch to {
	case Failed, Refused, RolledBack:
		log.Warn("plugin change "+string(to), "difference", c.Summary, "reasons", strings.Join(reasons, "; "), "refusals", c.Refusals)
	case Starting, Syncing, Comparing:
	default:
		log.Info("plugin change "+string(to), "difference", c.Summary, "took", c.Took)
	}
}

// found notes the difference.
func (c *Change) found(s *Swapper, d *guard.Difference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Difference, c.Summary = d, d.String()
}

// explain adds the fields that differ. It takes a while for large resources, and is done when all
// else is.
func (c *Change) explain(s *Swapper) {
	s.mu.Lock()
	d := c.Difference
	s.mu.Unlock()
	if d == nil {
		return
	}
	d = d.Explained()
	s.mu.Lock()
	c.Difference = d
	s.mu.Unlock()
}

// compared ends a dry run with what the guard says of it.
func (c *Change) compared(s *Swapper, why []string) {
	s.mu.Lock()
	c.Guard = why
	s.mu.Unlock()
	c.step(s, Compared)
}

func (c *Change) note(s *Swapper, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// copied is the change as it is now.
func (s *Swapper) copied(c *Change) *Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := *c
	is.Guard = slices.Clone(c.Guard)
	is.Reasons, is.Refusals, is.Notes = slices.Clone(c.Reasons), slices.Clone(c.Refusals), slices.Clone(c.Notes)
	return &is
}
