// Package admin is what people look at: the HTTP port with readiness and debug pages, and the
// monitoring port with metrics.
package admin

import (
	"context"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/load"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Source is what the pages show; core/control implements it. Any goroutine may call its methods.
// What they return is the caller's, but for rows and bodies, which are shared and read only. Lists
// need no order.
type Source interface {
	// Ready returns why proxies aren't served, one reason a line; none: they are.
	Ready() []string
	// Revision returns the revision that is served.
	Revision() Revision
	Plugins() []Plugin
	Views() []View
	Streams() []Stream
	// Tables returns the tables that have rows, or that a plugin reads or publishes.
	Tables() []Table
	// Rows returns the rows of a table; none where there is no such table.
	Rows(table string) []*pb.Row
	// SecretTable reports whether the rows of a table are secrets.
	SecretTable(name string) bool
	Insight
	Past
	Planner
	// Dump returns what the streams of a node are to have, of each type that it asked for; ok is
	// false where no such node is connected.
	Dump(nodeID string) (types []TypeDump, ok bool)
}

// Insight says where what proxies have comes from, and what became of it.
type Insight interface {
	// Proxy returns the views of a node's newest stream, and what it gets of them; ok is false
	// where it is not connected.
	Proxy(node string) (p Proxy, ok bool)
	// Explain says what a resource of a node was made from; the error says that it has none.
	Explain(ctx context.Context, node, typeURL, name string) (Explanation, error)
	// Impact says what was made from a row.
	Impact(ctx context.Context, row RowName) Impact
	// Effects says of objects that people write what was made from them.
	Effects(ctx context.Context) Effects
	// Derivations are the objects that people wrote, by those that plugins derived from them.
	Derivations() map[RowName]RowName
	// Progress says whom a row has reached; the error says that pushes are not followed.
	Progress(row RowName) (Progress, error)
	// Pushes returns what revisions after one were for, oldest first; the error says that pushes
	// are not followed.
	Pushes(after uint64) ([]Push, error)
	// Refusals returns the resources that proxies refuse.
	Refusals() []Refusal
	// Ledger says what became of each resource of a node's streams, Streamed of each type of all
	// streams.
	Ledger(node string) []xds.StreamLedger
	Streamed() []xds.StreamStatus
}

// Past is what proxies were served, and which are served it again.
type Past interface {
	// History returns what is kept of the last revisions, and what else is remembered of pushes.
	History() History
	// Diff says what proxies, or a node alone, had at one revision and not at another; the error
	// says which revisions there are.
	Diff(from, to uint64, node string) (Difference, error)
	// Pins returns the pins, older ones first.
	Pins() []Pin
	// Rollout is how far the stage of a push is.
	Rollout() Rollout
}

// Planner says what somebody asked what it would change.
type Planner interface {
	// Plans returns dry runs that are in the making, and the last that ended.
	Plans() Plans
	// Planning returns how many are in the making, and a number that is another one as soon as
	// Plans says something else.
	Planning() (making int, moves uint64)
}

// Plugin is an entry of plugins.yaml and the process that carries it out.
type Plugin struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Carrier string `json:"carrier"`
	// Artifact is what it was fetched as, with its digest, where it was; Signed is what signed it.
	Artifact string `json:"artifact,omitempty"`
	Signed   string `json:"signed,omitempty"`
	// At is where plugins.yaml declares it: FILE:LINE:COLUMN.
	At    string `json:"at,omitempty"`
	State string `json:"state"`
	// Off is why it is disabled, where plugins.yaml doesn't say that it is.
	Off   string    `json:"off,omitempty"`
	Since time.Time `json:"since"`
	// Plugin and Version are what it says of itself.
	Plugin  string `json:"plugin,omitempty"`
	Version string `json:"version,omitempty"`
	PID     int    `json:"pid,omitempty"`
	// Rows that it has published, and Stale: they, and what it generates, are kept and may be out
	// of date, since when, and why.
	Rows       int       `json:"rows"`
	Stale      bool      `json:"stale,omitempty"`
	StaleSince time.Time `json:"staleSince,omitzero"`
	StaleWhy   string    `json:"staleWhy,omitempty"`
	// LastSign is when it last said rows, bodies, that it is done or that work goes on; a source
	// may have nothing to say.
	LastSign time.Time `json:"lastSign,omitzero"`
	// Revision that it has finished.
	Revision uint64 `json:"revision"`
	Restarts int    `json:"restarts"`
	// Memory is the proportional set size of its process, in bytes; 0 where unknown.
	Memory uint64 `json:"memory,omitempty"`
	// User that its process runs as, if not as the core; Sandbox says what it may not, Lacking what
	// could not be taken from it, and why.
	User      string   `json:"user,omitempty"`
	Sandbox   []string `json:"sandbox,omitempty"`
	Lacking   []string `json:"lacking,omitempty"`
	LastError string   `json:"lastError,omitempty"`
	// Exposed says where everybody may write to what it runs, or to what says what runs.
	Exposed []string `json:"exposed,omitempty"`
	// Withheld are rows, as "TABLE KEY", that it died over and gets as they were before, until they
	// change.
	Withheld []string `json:"withheld,omitempty"`
	// Faults are pieces of its work that failed and kept their last good result.
	Faults []WorkFault `json:"faults,omitempty"`
	// Refused are rows of it that are refused because their namespace is full, the first thousand.
	Refused []RefusedRow `json:"refused,omitempty"`
	// Held is what would take too much away and is kept back.
	Held *Hold `json:"held,omitempty"`
	// Away is since when its source is; nil: it is there.
	Away *Away `json:"away,omitempty"`
	// Reads and Publishes are tables, as it says itself; none until it has.
	Reads     []string `json:"reads,omitempty"`
	Publishes []string `json:"publishes,omitempty"`
	// Load is what it was asked and how it answered.
	Load load.Load `json:"load,omitzero"`
	// LastChange says what became of its last swap, restart, and the like.
	LastChange string `json:"lastChange,omitempty"`
}

// DroppedRows are what a plugin read and made no rows of, or not those that it says, for one
// reason.
type DroppedRows struct {
	// Effect is dropped: there are no rows of it; kept: those of its last good version are served;
	// noted: its rows are served, and something about it does not count.
	Effect   string `json:"effect"`
	Reason   string `json:"reason"`
	Severity string `json:"severity"`
	Count    int    `json:"count"`
	// Example says where one is, and what is wrong with it.
	Example string `json:"example"`
}

// What the core says of itself is shown as it is.
type (
	Revision   = report.Revision
	Hold       = report.Hold
	Away       = report.Away
	TableRows  = report.TableRows
	HiddenRows = report.HiddenRows
	WorkFault  = report.WorkFault
	RefusedRow = report.RefusedRow
	RowName    = report.RowName
	View       = report.View
	Stream     = report.Stream
	StreamType = report.StreamType
	Table      = report.Table
	TypeDump   = report.TypeDump

	Proxy       = report.Proxy
	Explanation = report.Explanation
	Origin      = report.Origin
	Impact      = report.Impact
	Affected    = report.Affected
	Effects     = report.Effects
	Effect      = report.Effect
	Progress    = report.Progress
	Push        = report.Push
	Refusal     = report.Refusal

	History    = report.History
	Kept       = report.Kept
	Difference = report.Difference

	DifferentBody = report.DifferentBody
	Pin           = report.Pin
	PinnedProxy   = report.PinnedProxy
	Rollout       = report.Rollout

	Plans = report.Plans
	Plan  = report.Plan
)
