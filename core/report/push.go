package report

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/revision"
)

// Push is what a revision was for, who made it, and whom it reached.
type Push struct {
	Revision uint64 `json:"revision"`
	// Kind is full, endpoints, dropped or returned; docs/operations.md says what they mean.
	Kind string `json:"kind"`
	// Committed is when its rows were, Waited how long they waited for that, Took how long it was
	// made, all in nanoseconds where they are durations. Done is when all connections that it
	// concerned had answered; the zero time: some have not.
	Committed time.Time     `json:"committed"`
	Waited    time.Duration `json:"waited"`
	Took      time.Duration `json:"took"`
	Done      time.Time     `json:"done,omitzero"`
	// Held: too much would have gone, so that it was not shown (coxswain hold).
	Held bool `json:"held,omitempty"`
	// Rows are some of those that sources changed, Changed how many of each table changed, those
	// that plugins derived included.
	Rows    []PushedRow    `json:"rows,omitempty"`
	Changed map[string]int `json:"changed,omitempty"`
	// Plugins took part, by name, each with how long it was waited for.
	Plugins map[string]time.Duration `json:"plugins,omitempty"`
	// Work is what plugins did for it, in the order in which they were done; Answers when
	// connections had answered all of it, the last of them. Both are for traces.
	Work    []revision.Work `json:"-"`
	Answers []Answer        `json:"-"`
	// Partial names plugins that were not done in time.
	Partial []string `json:"partial,omitempty"`
	// Views is how many views of each type changed.
	Views map[string]int `json:"views,omitempty"`
	// Proxies is how many connections it concerned; of these Waiting have not answered yet, and
	// Left have gone without.
	Proxies int `json:"proxies"`
	Waiting int `json:"waiting"`
	Left    int `json:"left,omitempty"`
	// Responses, Resources and Bytes are what was acknowledged of it, by type.
	Sent map[string]Sent `json:"sent,omitempty"`
	// Refused are some of the responses that were refused, Refusals how many there were.
	Refused  []PushRefusal `json:"refused,omitempty"`
	Refusals int           `json:"refusals,omitempty"`
}

// Empty reports whether it changed nothing and concerned nobody: plugins were to tidy up.
func (p *Push) Empty() bool {
	return p.Kind == "full" && !p.Held && len(p.Partial)+len(p.Changed)+len(p.Views)+p.Proxies == 0
}

// PushedRow is a row that changed.
type PushedRow struct {
	RowName
	// What is added, changed or removed.
	What   string `json:"what"`
	Plugin string `json:"plugin,omitempty"`
	Source string `json:"source,omitempty"`
}

// Answer is when a connection had answered all that it got of a push.
type Answer struct {
	Node string
	At   time.Time
}

// Sent is what was sent of a type, and answered.
type Sent struct {
	Responses int   `json:"responses"`
	Resources int   `json:"resources"`
	Bytes     int64 `json:"bytes"`
}

// PushRefusal is a response that a proxy refused.
type PushRefusal struct {
	Node   string `json:"node"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// Progress is whom a row has reached.
type Progress struct {
	Row Origin `json:"row"`
	// Served is the revision that is served.
	Served uint64 `json:"served"`
	// Proxies is how many are connected; those of Waiting have not answered all up to the row's
	// revision.
	Proxies int      `json:"proxies"`
	Waiting []string `json:"waiting"`
	// Refused are the resources made from it that proxies refuse.
	Refused []Refusal `json:"refused,omitempty"`
}
