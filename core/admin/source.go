// Package admin is what people look at: the HTTP port with readiness and debug pages, and the monitoring port with metrics.
package admin

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/load"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Source is what the pages show; core/control implements it. Any goroutine may call its methods. What they return is the caller's, but for
// rows and bodies, which are shared and read only. Lists need no order.
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
	// Dump returns what the streams of a node are to have, of each type that it asked for; ok is false where no such node is connected.
	Dump(nodeID string) (types []TypeDump, ok bool)
}

// Revision that is served.
type Revision struct {
	Epoch  uint64 `json:"epoch"`
	Number uint64 `json:"number"`
	// Partial names plugins whose last rows were served because they did not finish in time.
	Partial []string `json:"partial,omitempty"`
	// PartialSince is since when revisions go out without them.
	PartialSince map[string]time.Time `json:"partialSince,omitempty"`
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
	// Rows that it has published, and Stale: they, and what it generates, are kept and may be out of date, since when, and why.
	Rows       int       `json:"rows"`
	Stale      bool      `json:"stale,omitempty"`
	StaleSince time.Time `json:"staleSince,omitzero"`
	StaleWhy   string    `json:"staleWhy,omitempty"`
	// LastSign is when it last said rows, bodies, that it is done or that work goes on; a source may have nothing to say.
	LastSign time.Time `json:"lastSign,omitzero"`
	// Revision that it has finished.
	Revision uint64 `json:"revision"`
	Restarts int    `json:"restarts"`
	// Memory is the proportional set size of its process, in bytes; 0 where unknown.
	Memory uint64 `json:"memory,omitempty"`
	// User that its process runs as, if not as the core; Sandbox says what it may not, Lacking what could not be taken from it, and why.
	User      string   `json:"user,omitempty"`
	Sandbox   []string `json:"sandbox,omitempty"`
	Lacking   []string `json:"lacking,omitempty"`
	LastError string   `json:"lastError,omitempty"`
	// Exposed says where everybody may write to what it runs, or to what says what runs.
	Exposed []string `json:"exposed,omitempty"`
	// Withheld are rows, as "TABLE KEY", that it died over and gets as they were before, until they change.
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

// Hold is what is kept back of a plugin: changes of rows, or of what proxies have, and what they would lose.
type Hold struct {
	Since   time.Time `json:"since"`
	Rows    int       `json:"rows,omitempty"`
	Proxies int       `json:"proxies,omitempty"`
	Reasons []string  `json:"reasons"`
	// Names of the rows.
	Names []RowName `json:"-"`
}

// Away is the source of a plugin's rows that is not there.
type Away struct {
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
	// Drops is when the rows go, or went if they are Dropped; the zero time: they stay.
	Drops   time.Time `json:"drops,omitzero"`
	Dropped bool      `json:"dropped,omitempty"`
}

// TableRows is what became of a plugin's rows of a table.
type TableRows struct {
	Table  string `json:"table"`
	Served int    `json:"served"`
	// Hidden are not served, because of others or because the source is away; Held are changes that are kept back.
	Hidden []HiddenRows `json:"hidden,omitempty"`
	Held   int          `json:"held,omitempty"`
}

// HiddenRows are rows that are not served for one reason.
type HiddenRows struct {
	// By is the plugin whose rows are served instead; empty: none.
	By string `json:"by,omitempty"`
	// Reason is priority, order or onLoss, Text what that means.
	Reason string `json:"reason"`
	Text   string `json:"text"`
	Rows   int    `json:"rows"`
	// Example is the key of one.
	Example string `json:"example"`
}

// DroppedRows are what a plugin read and made no rows of, or not those that it says, for one reason.
type DroppedRows struct {
	// Effect is dropped: there are no rows of it; kept: those of its last good version are served; noted: its rows are served, and something about it
	// does not count.
	Effect   string `json:"effect"`
	Reason   string `json:"reason"`
	Severity string `json:"severity"`
	Count    int    `json:"count"`
	// Example says where one is, and what is wrong with it.
	Example string `json:"example"`
}

// WorkFault is a piece of a plugin's work that failed and kept its last good result, and the rows that it was made from.
type WorkFault struct {
	What   string    `json:"what"`
	Reason string    `json:"reason"`
	Rows   []RowName `json:"rows,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Skipped: nothing of it is kept; it is a patch that is left out.
	Skipped bool `json:"skipped,omitempty"`
}

// RowName names a row.
type RowName struct {
	Table string `json:"table"`
	Key   string `json:"key"`
}

// View is an equivalence class of connections of a type.
type View struct {
	Type string `json:"type"`
	ID   uint64 `json:"id"`
	// Plugin is the entry that generates it.
	Plugin string            `json:"plugin"`
	Label  string            `json:"label"`
	Facts  map[string]string `json:"facts,omitempty"`
	// Connections that are in it.
	Connections int `json:"connections"`
	Resources   int `json:"resources"`
	// Bytes of the resources, as they are sent.
	Bytes int `json:"bytes"`
}

// Stream is a connected xDS stream.
type Stream struct {
	Connection uint64    `json:"connection"`
	Node       string    `json:"node"`
	Protocol   string    `json:"protocol"`
	Remote     string    `json:"remote"`
	Since      time.Time `json:"since"`
	Identities []string  `json:"identities,omitempty"`
	// Types by type URL.
	Types map[string]StreamType `json:"types"`
}

// StreamType is what a stream wants of a type and what became of it.
type StreamType struct {
	Wildcard bool `json:"wildcard,omitempty"`
	// Names that it subscribed to, besides the wildcard.
	Names int `json:"names"`
	// View of the type that it is in.
	View uint64 `json:"view"`
	// Acked is the version that it acknowledged last, AckedRevision the revision that this was made for.
	Acked         string `json:"acked,omitempty"`
	AckedRevision uint64 `json:"ackedRevision"`
	// Refused is what it said of the response that it refused last, if it has not acknowledged a later one.
	Refused string `json:"refused,omitempty"`
}

// Table of the Environment.
type Table struct {
	Name string `json:"name"`
	// Shards counts rows by plugin.
	Shards map[string]int `json:"shards"`
}

// TypeDump is what a node is to have of a type.
type TypeDump struct {
	Type string
	// Sensitive bodies are not shown.
	Sensitive bool
	Bodies    []*view.Body
}
