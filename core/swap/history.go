package swap

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// historyLength is how many changes of a plugin are kept.
const historyLength = 10

// history keeps the last changes of each plugin, and tells the log, the audit log and the metrics
// what becomes of them.
type history struct {
	log   *slog.Logger
	audit *audit.Log
	// ended is told what became of each change.
	ended func(plugin, outcome string)

	mu sync.Mutex
	// changes are those of a plugin by its name, the newest last.
	changes map[string][]*attempt
}

func newHistory(log *slog.Logger, audit *audit.Log, ended func(plugin, outcome string)) *history {
	return &history{log: log, audit: audit, ended: ended, changes: map[string][]*attempt{}}
}

// attempt is a change that takes place, or did: what is shown of it, and what is known besides.
type attempt struct {
	in *history
	// shown is the change. Its plugin and what is done stay as they are; all else is behind the
	// history's lock.
	shown Change
	// by is the context of whoever wants it; audited is what is known of it for the audit log.
	by      context.Context
	audited audit.Entry
	// run is the dry run that it is a step of; nil: of none.
	run *dryRun
	// undo is what the file said before it was written, and wrote what it said then. They belong to
	// whoever has the turn.
	undo, wrote []byte
}

// open notes the beginning of a change.
func (h *history) open(ctx context.Context, what string, last, e *manifest.Entry, o Options) *attempt {
	name := e.Name
	c := &attempt{
		in: h, shown: Change{Plugin: name, What: what, From: describe(last), To: describe(e), At: time.Now()},
		by: context.WithoutCancel(ctx), audited: toAudit(what, last, e, o), run: o.run,
	}
	switch what {
	case doAdd:
		c.shown.From = ""
	case doRemove:
		c.shown.To = ""
	}
	o.run.takes(c.now)
	h.mu.Lock()
	defer h.mu.Unlock()
	all := append(h.changes[name], c)
	if n := len(all); n > historyLength {
		all = slices.Delete(all, 0, n-historyLength)
	}
	h.changes[name] = all
	return c
}

// last is the newest change of a plugin, of which there is one.
func (h *history) last(name string) *attempt {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.changes[name]
	return all[len(all)-1]
}

// of returns the changes of a plugin as they are now, the newest last.
func (h *history) of(name string) []*Change {
	h.mu.Lock()
	all := slices.Clone(h.changes[name])
	h.mu.Unlock()
	var now []*Change
	for _, c := range all {
		now = append(now, c.now())
	}
	return now
}

// step takes a change to a state.
func (c *attempt) step(to State, reasons ...string) {
	h, is := c.in, &c.shown
	defer c.run.moved()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(is.State.next(), to) {
		h.log.Error("a change of a plugin went astray", "plugin", is.Plugin, "from", is.State, "to", to)
	}
	is.State = to
	is.Reasons = append(is.Reasons, reasons...)
	if to.Over() || to == Switched {
		if is.WarmUntil.IsZero() {
			is.Took = time.Since(is.At)
		}
		h.ended(is.Plugin, string(to))
	}
	c.auditLocked(to, reasons)
	log := h.log.With("plugin", is.Plugin, "what", is.What, "to", is.To)
	switch to {
	case Failed, Refused, RolledBack:
		log.Warn("plugin change "+string(to), "difference", is.Summary, "reasons", strings.Join(reasons, "; "), "refusals", is.Refusals)
	case Starting, Syncing, Comparing:
	default:
		log.Info("plugin change "+string(to), "difference", is.Summary, "took", is.Took)
	}
}

// auditLocked notes what came of a change.
func (c *attempt) auditLocked(to State, reasons []string) {
	if c.audited.What == "" {
		return
	}
	is, by := c.audited, c.by
	switch to {
	case Switched, Failed, Refused:
	case RolledBack:
		is.What, is.From, is.To, is.Force, is.Ephemeral = "rollback", is.To, is.From, false, false
		by = audit.Acting(by, audit.ByRollback)
	default:
		return
	}
	is.Outcome, is.Summary, is.Reasons = string(to), strings.TrimSpace(c.shown.Summary), slices.Clone(reasons)
	c.in.audit.Add(by, is)
}

// unaudited leaves what comes of a change out of the audit log from now on.
func (c *attempt) unaudited() {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.audited = audit.Entry{}
}

// between notes what runs, and what is to run, once artifacts are fetched.
func (c *attempt) between(last, e *manifest.Entry) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.shown.From, c.shown.To = describe(last), describe(e)
	if c.audited.What != "" {
		c.audited.From, c.audited.To = programOf(last), programOf(e)
	}
}

// found notes the difference.
func (c *attempt) found(d *guard.Difference) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.shown.Difference, c.shown.Summary = d, d.String()
}

// explain adds the fields that differ. It takes a while for large resources, and is done when all
// else is.
func (c *attempt) explain() {
	c.in.mu.Lock()
	d := c.shown.Difference
	c.in.mu.Unlock()
	if d == nil {
		return
	}
	d = d.Explained()
	c.in.mu.Lock()
	c.shown.Difference = d
	c.in.mu.Unlock()
}

// compared ends a dry run with what the guard says of it.
func (c *attempt) compared(why []string) {
	c.in.mu.Lock()
	c.shown.Guard = why
	c.in.mu.Unlock()
	c.step(Compared)
}

// note adds what else there is to know.
func (c *attempt) note(format string, args ...any) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.shown.Notes = append(c.shown.Notes, fmt.Sprintf(format, args...))
}

// refused keeps what proxies said of it, if they said something.
func (c *attempt) refused(lines []string) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	if len(lines) > 0 {
		c.shown.Refusals = lines
	}
}

// warm notes how long the old instance is kept.
func (c *attempt) warm(until time.Time) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.shown.WarmUntil = until
}

// now is the change as it is now.
func (c *attempt) now() *Change {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	is := c.shown
	is.Guard = slices.Clone(is.Guard)
	is.Reasons, is.Refusals, is.Notes = slices.Clone(is.Reasons), slices.Clone(is.Refusals), slices.Clone(is.Notes)
	return &is
}
