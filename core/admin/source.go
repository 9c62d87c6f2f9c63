// Package admin is what people look at: the HTTP port with readiness and debug pages, and the
// monitoring port with metrics.
package admin

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/load"
	"github.com/coxswain-mesh/coxswain/core/report"
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
	// Dump returns what the streams of a node are to have, of each type that it asked for; ok is
	// false where no such node is connected.
	Dump(nodeID string) (types []TypeDump, ok bool)
}

// Plugin is an entry of plugins.yaml and the process that carries it out.
type Plugin struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Carrier string `json:"carrier"`
	// At is where plugins.yaml declares it: FILE:LINE:COLUMN.
	At    string    `json:"at,omitempty"`
	State string    `json:"state"`
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
	// Held is what would take too much away and is kept back.
	Held *Hold `json:"held,omitempty"`
	// Away is since when its source is; nil: it is there.
	Away *Away `json:"away,omitempty"`
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
	RowName    = report.RowName
	View       = report.View
	Stream     = report.Stream
	StreamType = report.StreamType
	Table      = report.Table
	TypeDump   = report.TypeDump
)
