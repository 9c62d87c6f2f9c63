// Package host runs the plugins that plugins.yaml declares: it starts, watches and restarts them,
// and hands each live session to the core.
package host

import (
	"context"
	"errors"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/sandbox"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Instance is one run of a plugin: a session that has said Ready.
type Instance struct {
	Entry *manifest.Entry
	// Order is the entry's place in plugins.yaml; of two that could do the same the first one does.
	Order int
	// Ready is what the plugin said of itself, checked against the entry.
	Ready *pb.Ready
	Link  *session.Core
	// PID of its process; the runner's for WASM.
	PID int
	// Candidate: another instance of the name is served, whose place this one may take.
	Candidate bool
}

// Sessions takes over live sessions; core/control implements it.
type Sessions interface {
	// Serve drives a session until it ends, ctx ends, or the plugin broke a rule; the error says
	// which, or is ErrAsleep. It closes the link.
	Serve(ctx context.Context, inst *Instance) error
	// Learn takes in what a plugin that starts on demand says of itself, which then sleeps: inst
	// has no Link. The error is the rule that it would break.
	Learn(inst *Instance) error
}

// ErrAsleep is what Sessions.Serve returns for a plugin that starts on demand when nobody needs it:
// its process ends, and begins again with Wake.
var ErrAsleep = errors.New("nothing needs it")

// State is a plugin's place in its life.
type State string

// States, in the order of a life; Failed is reachable from each.
const (
	Declared    State = "declared"
	Starting    State = "starting"
	Configuring State = "configuring"
	Syncing     State = "syncing"
	Serving     State = "serving"
	// Asleep: it starts on demand, and nobody asks for what it makes or there is nothing that it
	// reads.
	Asleep   State = "asleep"
	Draining State = "draining"
	Gone     State = "gone"
	Failed   State = "failed"
)

// Status is what is known of a plugin.
type Status struct {
	// Entry is what plugins.yaml declares.
	Entry           *manifest.Entry
	State           State
	Since           time.Time
	Plugin, Version string
	PID             int
	Restarts        int
	// LastError is why it last failed, with the last lines of its standard error.
	LastError string
	// Memory is the proportional set size of its process, in bytes; 0 where unknown.
	Memory uint64
	// Sandbox says what was taken from its process, and what could not be.
	Sandbox sandbox.Report
	// Exposed says where everybody may write to what it runs.
	Exposed []string
	// User that its process runs as, if not as the core.
	User string
}
