// Package report has the words in which the core says what it does: core/control fills them in,
// core/admin and others show them. It has no code.
package report

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Revision that is served.
type Revision struct {
	Epoch  uint64 `json:"epoch"`
	Number uint64 `json:"number"`
	// Partial names plugins whose last rows were served because they did not finish in time.
	Partial []string `json:"partial,omitempty"`
	// PartialSince is since when revisions go out without them.
	PartialSince map[string]time.Time `json:"partialSince,omitempty"`
}

// Hold is what is kept back of a plugin: changes of rows, or of what proxies have, and what they
// would lose.
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
	// Hidden are not served, because of others or because the source is away; Held are changes that
	// are kept back.
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

// WorkFault is a piece of a plugin's work that failed and kept its last good result, and the rows
// that it was made from.
type WorkFault struct {
	What   string    `json:"what"`
	Reason string    `json:"reason"`
	Rows   []RowName `json:"rows,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Skipped: nothing of it is kept; it is a patch that is left out.
	Skipped bool `json:"skipped,omitempty"`
}

// RefusedRow is a row of a plugin that is refused because its namespace is full.
type RefusedRow struct {
	RowName
	Source string `json:"source,omitempty"`
	Reason string `json:"reason"`
	// Kept: an earlier version of it is served.
	Kept  bool      `json:"kept,omitempty"`
	Since time.Time `json:"since,omitzero"`
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
	// Acked is the version that it acknowledged last, AckedRevision the revision that this was made
	// for.
	Acked         string `json:"acked,omitempty"`
	AckedRevision uint64 `json:"ackedRevision"`
	// Refused is what it said of the response that it refused last, if it has not acknowledged a
	// later one.
	Refused string `json:"refused,omitempty"`
}

// Table of the Environment.
type Table struct {
	Name string `json:"name"`
	// Shards counts rows by plugin.
	Shards map[string]int `json:"shards"`
	// Secret: what is in its rows is not shown.
	Secret bool `json:"secret,omitempty"`
}

// TypeDump is what a node is to have of a type.
type TypeDump struct {
	Type string
	// Sensitive bodies are not shown.
	Sensitive bool
	Bodies    []*view.Body
}
