package report

import "time"

// Proxy is a connected stream's node, and the views that it is in.
type Proxy struct {
	Node       string      `json:"node"`
	Connection uint64      `json:"connection"`
	Since      time.Time   `json:"since"`
	Types      []ProxyType `json:"types"`
	// Pinned is the revision that it is pinned to; 0: none. Staged: by the stage of a push.
	Pinned uint64 `json:"pinned,omitempty"`
	Staged bool   `json:"staged,omitempty"`
}

// ProxyType is what a stream gets of a type.
type ProxyType struct {
	Type string `json:"type"`
	// Plugin is the generator that serves it; View is empty until it has placed the stream.
	Plugin string       `json:"plugin"`
	View   *PlacedView  `json:"view,omitempty"`
	Names  []NamedState `json:"resources"`
}

// PlacedView is a view that a stream is in.
type PlacedView struct {
	ID          uint64            `json:"id"`
	Label       string            `json:"label"`
	Facts       map[string]string `json:"facts,omitempty"`
	Connections int               `json:"connections,omitempty"`
}

// NamedState is a resource that a stream is to have, by its version; none: it is known that there
// is no such resource.
type NamedState struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// Explanation says what a resource of a proxy was made from.
type Explanation struct {
	Node       string      `json:"node"`
	Connection uint64      `json:"connection"`
	Type       string      `json:"type"`
	Name       string      `json:"name"`
	Plugin     string      `json:"plugin"`
	View       *PlacedView `json:"view,omitempty"`
	// Version is the resource's; empty: there is no such resource, for the reasons below.
	Version string `json:"version,omitempty"`
	// Rows were read for it, Missing were looked for and are not there; More: there are others.
	Rows    []Origin  `json:"rows,omitempty"`
	Missing []RowName `json:"missing,omitempty"`
	More    bool      `json:"more,omitempty"`
	// Pinned is the revision that the proxy is pinned to, from which the resource is; 0: none.
	// Staged: by the stage of a push. What it was made from is said of what is live, whose version
	// is Live; empty: there is none.
	Pinned uint64 `json:"pinned,omitempty"`
	Staged bool   `json:"staged,omitempty"`
	Live   string `json:"live,omitempty"`
	// Patches are plugins that changed what the generator made.
	Patches []string `json:"patches,omitempty"`
	// Unknown says why it can't be said what it was made from; Reads are then the tables that its
	// generator reads.
	Unknown string   `json:"unknown,omitempty"`
	Reads   []string `json:"reads,omitempty"`
}

// Origin is a row that something was made from.
type Origin struct {
	RowName
	// Plugin published it, Source is where that had it from.
	Plugin string `json:"plugin,omitempty"`
	Source string `json:"source,omitempty"`
	// Of is the object that people wrote from which a plugin derived it; nil: it is none that was
	// derived.
	Of *RowName `json:"of,omitempty"`
	// Revision since which it is as it is, and when that began to be served, as far as that is
	// remembered.
	Revision uint64    `json:"revision,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	// Gone: there is no such row any more, and the resource has not been made anew.
	Gone bool `json:"gone,omitempty"`
}

// Impact is what depends on a row.
type Impact struct {
	Row Origin `json:"row"`
	// Through are rows that plugins derived from it.
	Through []RowName `json:"through,omitempty"`
	// Resources that it was read for or, if there is no such row, looked for.
	Resources []Affected `json:"resources"`
	// Proxies are the nodes that have, or ask for, one of them.
	Proxies []string `json:"proxies"`
	// Asked is how many resources were asked about, Unknown of how many it could not be said, and
	// why for the first of them.
	Asked   int    `json:"asked"`
	Unknown int    `json:"unknown,omitempty"`
	Why     string `json:"why,omitempty"`
}

// Affected is a resource that depends on a row.
type Affected struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Plugin string `json:"plugin"`
	// Proxies is how many have it or ask for it.
	Proxies int `json:"proxies"`
	// Absent: there is no such resource, and the row has a part in that.
	Absent bool `json:"absent,omitempty"`
}

// Refusal is a resource that proxies refuse, and what becomes of it.
type Refusal struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Plugin string `json:"plugin"`
	// View of the proxies, Version the one that they refuse, Instead what they are served in its
	// place; empty: nothing.
	View    PlacedView `json:"view"`
	Version string     `json:"version"`
	Instead string     `json:"instead,omitempty"`
	// Reason is what the first of them said, Since when.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// Pieces are some parts of it that are refused, in words, and how many more there are; empty:
	// it is one, or they are looked for still.
	Pieces []string `json:"pieces,omitempty"`
	// Held: the proxies of Namespaces that have not accepted it are served what is served Instead,
	// new ones too; else those alone that refuse it have something else.
	Held       bool     `json:"held"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Proxies are some that refuse it, Refusing how many do.
	Proxies  []string `json:"proxies"`
	Refusing int      `json:"refusing"`
	// Votes is how many verified identities refuse it, most of whose proxies do, of so many Voters
	// in the view. Where it is 0, what proxies say counts for themselves alone.
	Votes  int `json:"votes"`
	Voters int `json:"voters"`
	// Patches are those that made it what it is, if any did: their plugins, or what they read, may
	// be at fault.
	Patches []string `json:"patches,omitempty"`
	// Rows that its refused pieces were made from and that changed with them or, where that is not
	// remembered, all of those that people write; empty: its generator does not say, or the pieces
	// are looked for still. Owners are the same by piece.
	Rows   []RowName `json:"rows,omitempty"`
	Owners []Owners  `json:"owners,omitempty"`
}

// Owners are the rows that a piece of a resource was made from.
type Owners struct {
	// Piece says which it is, in words; empty: all of the resource.
	Piece string    `json:"piece,omitempty"`
	Rows  []RowName `json:"rows"`
}

// Effects says of objects that people write what was made from them.
type Effects struct {
	// Rows are those from which something was made that proxies have or ask for.
	Rows []Effect `json:"rows"`
	// Unread are tables that no plugin reads.
	Unread []string `json:"unread,omitempty"`
	// Proxies is how many are connected, Asked how many resources were asked about, Unknown of how
	// many it could not be said from what they were made.
	Proxies int `json:"proxies"`
	Asked   int `json:"asked"`
	Unknown int `json:"unknown,omitempty"`
}

// Effect is what was made from a row: resources, in views of so many connections at most.
type Effect struct {
	RowName
	Resources int `json:"resources"`
	Proxies   int `json:"proxies"`
}
