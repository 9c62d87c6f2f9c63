package serving

import (
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"golang.org/x/time/rate"
)

// Crowds says which namespaces are full, so that rows of them are refused.
type Crowds struct {
	state *state.State
	// seen is the change up to which all is said.
	seen uint64
	// since is when it was said of a namespace that it is full, of its policies or of its other
	// rows.
	since map[crowd]time.Time
	lines *rate.Limiter
}

type crowd struct {
	namespace string
	policies  bool
}

func newCrowds(st *state.State) *Crowds {
	return &Crowds{state: st, since: map[crowd]time.Time{}, lines: rate.NewLimiter(state.LogsPerSecond, state.LogsAtOnce)}
}

// Tell says, once, that a namespace is full, and that it is so no more, and has what was let in or
// taken out committed, whoever made room for it.
func (c *Crowds) Tell(now time.Time) {
	changes := c.state.Env.Spaces.Changes()
	if changes == c.seen {
		return
	}
	c.seen = changes
	if endpoints, rest := c.state.Env.Pending.Waits(); endpoints || rest {
		c.state.Course.Debounce.Touch(environment.Own, now)
	}
	full := map[crowd]bool{}
	for _, f := range c.state.Env.Spaces.Crowded() {
		of := crowd{f.Namespace, f.Policies}
		full[of] = true
		if !c.since[of].IsZero() {
			continue
		}
		c.since[of] = now
		if c.lines.AllowN(now, 1) {
			c.state.Log.Error("a namespace is full: its newest objects are refused", "namespace", f.Namespace, "reason", Full(f))
		}
	}
	for of := range c.since {
		if full[of] {
			continue
		}
		delete(c.since, of)
		if c.lines.AllowN(now, 1) {
			c.state.Log.Info("a namespace has room again: nothing of it is refused", "namespace", of.namespace)
		}
	}
}

// Since is when a namespace was found to be full.
func (c *Crowds) Since(f environment.Crowded) time.Time {
	return c.since[crowd{f.Namespace, f.Policies}]
}

// Full says that a namespace is full, and what to do.
func Full(f environment.Crowded) string {
	what, then := "objects", "delete some, or raise maxNamespaceBytes"
	if f.Policies {
		what = "policies"
		then = "what is refused might forbid something, so all is forbidden in the namespace until all of them fit: " + then
	}
	text := fmt.Sprintf(
		"the %s of namespace %s count %s of the %s that they may (maxNamespaceBytes): the oldest are kept, and %d newer ones, or newer versions, wait for room",
		what, f.Namespace, size(f.Used), size(f.Most), f.Rows,
	)
	if f.Forgotten > 0 {
		text += fmt.Sprintf("; %d more come only when they change, or their plugin starts anew", f.Forgotten)
	}
	return text + "; " + then
}

// Unserved says of a row that its namespace is full, in words that stay the same while it is.
func Unserved(f environment.Crowded, r environment.RefusedRow) string {
	what, of, then := "it is not served", "objects", ""
	if r.Kept {
		what = "its earlier version is served"
	}
	if f.Policies {
		of, then = "policies", ", and meanwhile all is forbidden there"
	}
	return fmt.Sprintf("%s: the %s of namespace %s may count %s (maxNamespaceBytes), and older ones take that: it waits for room%s",
		what, of, f.Namespace, size(f.Most), then)
}

func size(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
