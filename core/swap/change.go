package swap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// State is how far a change of a plugin has come.
type State string

// States of a change. A plain path is starting, syncing, comparing, switched, kept.
const (
	// Starting: the new instance's process starts and is configured.
	Starting State = "starting"
	// Syncing: it says all that it has to say.
	Syncing State = "syncing"
	// Comparing: what it says is compared with what is served.
	Comparing State = "comparing"
	// Compared: that was all (a dry run).
	Compared State = "compared"
	// Refused: a guard said no. The old one goes on.
	Refused State = "refused"
	// Failed: it did not get ready. The old one goes on.
	Failed State = "failed"
	// Switched: it is served; the old one is warm and may come back.
	Switched State = "switched"
	// Kept: the old one is gone.
	Kept State = "kept"
	// RolledBack: the old one is served again.
	RolledBack State = "rolled back"
)

// next are the states that may follow one.
func (s State) next() []State {
	switch s {
	case "":
		return []State{Starting, Switched, Compared, Refused, Failed}
	case Starting:
		return []State{Syncing, Failed, Switched, Compared}
	case Syncing:
		return []State{Comparing, Failed}
	case Comparing:
		return []State{Compared, Refused, Failed, Switched}
	case Switched:
		return []State{Kept, RolledBack}
	}
	return nil
}

// Over says whether nothing more happens.
func (s State) Over() bool { return len(s.next()) == 0 }

// What is done to a plugin.
const (
	doSwap    = "swap"
	doAdd     = "add"
	doRemove  = "remove"
	doRestart = "restart"
	// doRollback is a swap with what ran before.
	doRollback = "rollback"
)

// Change is one change of a plugin.
type Change struct {
	Plugin string `json:"plugin"`
	// What is swap, restart, rollback, add or remove.
	What string    `json:"what"`
	At   time.Time `json:"at"`
	// From and To say what ran and what runs.
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
	State State  `json:"state"`
	// Summary is the difference in one line.
	Summary    string            `json:"summary,omitempty"`
	Difference *guard.Difference `json:"difference,omitempty"`
	// Guard is what the guard says of a dry run: why it would be refused.
	Guard []string `json:"guard,omitempty"`
	// Reasons why it was refused, failed or rolled back.
	Reasons []string `json:"reasons,omitempty"`
	// Refusals are what proxies said of it.
	Refusals []string `json:"refusals,omitempty"`
	// Notes say what else there is to know.
	Notes []string `json:"notes,omitempty"`
	// Took is from the start until the switch, or the end.
	Took time.Duration `json:"took"`
	// WarmUntil is how long the old one is kept.
	WarmUntil time.Time `json:"warmUntil,omitzero"`

	// undo is what the file said before it was written.
	undo, wrote []byte
	// by is the context of whoever wants it; audited is what is known of it for the audit log.
	by      context.Context
	audited audit.Entry
}

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

// History returns the last changes of a plugin, the newest last.
func (s *Swapper) History(name string) []*Change {
	s.mu.Lock()
	var all []*Change
	if p := s.plugins[name]; p != nil {
		all = slices.Clone(p.changes)
	}
	s.mu.Unlock()
	for i, c := range all {
		all[i] = s.copied(c)
	}
	return all
}

// Line is the change in one line.
func (c *Change) Line() string {
	line := c.What + " " + string(c.State)
	if c.Summary != "" {
		line += ": " + c.Summary
	}
	if len(c.Reasons) > 0 {
		line += " (" + strings.Join(c.Reasons, "; ") + ")"
	}
	return line
}

// Entries returns what is declared, in order; disabled ones too.
func (s *Swapper) Entries() []*manifest.Entry { return s.current().Plugins }

// FileFault is what is wrong with plugins.yaml as it is now; empty: nothing.
func (s *Swapper) FileFault() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault
}
