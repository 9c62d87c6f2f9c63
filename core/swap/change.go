package swap

import (
	"strings"
	"time"

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

// Over reports whether nothing more happens.
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

// Options of a change.
type Options struct {
	// DryRun compares and changes nothing.
	DryRun bool
	// Force goes on where guards say no.
	Force bool
	// Ephemeral leaves plugins.yaml as it is.
	Ephemeral bool
	// Declared runs no artifact but by a digest that plugins.yaml has, or that runs or ran: what a
	// tag means is not asked.
	Declared bool

	// anew asks the registry what the tag of the plugin's artifact means now.
	anew bool
	// asked is what a command calls it, if not as it is done.
	asked string
	// lost are the entries that the file has lost at once with this one.
	lost []string
	// run is the dry run that it is a step of; nil: of none.
	run *dryRun
}

// describe says in a word what an entry runs.
func describe(e *manifest.Entry) string {
	switch {
	case e == nil || e.Disabled:
		return ""
	case e.Plugin != "" && e.ArtifactDigest() != "":
		return "plugin " + string(e.Plugin.At(e.ArtifactDigest()))
	case e.Plugin != "":
		return "plugin " + string(e.Plugin)
	case e.Process != nil:
		return "process " + e.Process.Command
	case e.Wasm != nil:
		return "wasm " + e.Wasm.Path
	}
	return "builtin " + e.Builtin
}
