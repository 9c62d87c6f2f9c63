package report

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
)

// Plans are dry runs of changes of plugins: those that are in the making, and the last that ended.
type Plans struct {
	// Making are those that are in the making, the oldest first; MoreMaking is how many others are.
	Making     []Plan `json:"making"`
	MoreMaking int    `json:"moreMaking,omitempty"`
	// Ended are the last that ended, the newest first.
	Ended []Plan `json:"ended"`
}

// Plan is a dry run: what somebody asked what it would change.
type Plan struct {
	// ID is its own among all since the control plane started.
	ID uint64 `json:"id"`
	// Command is the command that it is, without the values of its flags; By is who gave it.
	Command string    `json:"command"`
	By      string    `json:"by"`
	State   PlanState `json:"state"`
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	// Of is how many steps it has; 0: that is not known yet. Steps are those that have begun, and
	// MoreSteps is how many others have.
	Of        int        `json:"of"`
	Steps     []PlanStep `json:"steps"`
	MoreSteps int        `json:"moreSteps,omitempty"`
	// Cut: it was too large to be kept whole. Whoever asked was told all of it.
	Cut bool `json:"cut,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
}

// PlanState is how far a Plan is.
type PlanState string

// States of a plan. PlanWaiting: something else is being done to plugins first.
const (
	PlanWaiting PlanState = "waiting"
	PlanMaking  PlanState = "making"
	PlanDone    PlanState = "done"
	PlanFailed  PlanState = "failed"
)

// PlanStep is a change of one plugin that a Plan would make, in the words of the change itself.
type PlanStep struct {
	Plugin string `json:"plugin"`
	// What is swap, restart, rollback, add or remove.
	What  string    `json:"what"`
	State string    `json:"state"`
	At    time.Time `json:"at"`
	// From and To say what runs and what would.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// Summary is the difference in one line.
	Summary    string            `json:"summary,omitempty"`
	Difference *guard.Difference `json:"difference,omitempty"`
	// Guard is why it would be refused.
	Guard []string `json:"guard,omitempty"`
	// Reasons why nothing could be found out.
	Reasons []string `json:"reasons,omitempty"`
	// Notes say what else there is to know.
	Notes []string      `json:"notes,omitempty"`
	Took  time.Duration `json:"took"`
}
