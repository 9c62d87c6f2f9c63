package report

import "time"

// History is what is kept of the last revisions.
type History struct {
	// Revisions are those that are kept, and others that are remembered, oldest first.
	Revisions []Kept `json:"revisions"`
	// Bytes is, about, what is taken by what is not served any more; at most MostBytes, and
	// MostRevisions revisions.
	Bytes         int64 `json:"bytes"`
	MostBytes     int64 `json:"mostBytes"`
	MostRevisions int   `json:"mostRevisions"`
	// File has it on disk; empty: none does. Fault is why it lacks something.
	File  string `json:"file,omitempty"`
	Fault string `json:"fault,omitempty"`
}

// Kept is a revision, and whether what was served then is kept.
type Kept struct {
	Push Push `json:"push"`
	Kept bool `json:"kept"`
	// Unchanged: proxies had the same after it as before.
	Unchanged bool `json:"unchanged,omitempty"`
}

// Difference is what proxies had at one revision and not at another.
type Difference struct {
	From      uint64          `json:"from"`
	To        uint64          `json:"to"`
	Resources []DifferentBody `json:"resources"`
	// Came and Left are proxies that there are at one of them alone; they are not compared.
	Came []string `json:"came,omitempty"`
	Left []string `json:"left,omitempty"`
	// Compared is how many proxies were.
	Compared int `json:"compared"`
}

// DifferentBody is a resource that differs, for the proxies that are named.
type DifferentBody struct {
	Type string `json:"type"`
	Name string `json:"name"`
	// Before and After are the versions, and BeforeValue and AfterValue the encoded messages;
	// empty: there was, or is, none.
	Before      string   `json:"before,omitempty"`
	After       string   `json:"after,omitempty"`
	BeforeValue []byte   `json:"beforeValue,omitempty"`
	AfterValue  []byte   `json:"afterValue,omitempty"`
	Proxies     []string `json:"proxies"`
	// Withheld: a value is not there, as it has something secret in it and the control plane has
	// started again since.
	Withheld bool `json:"withheld,omitempty"`
}

// Pin has proxies served what was served at a revision.
type Pin struct {
	Revision uint64 `json:"revision"`
	// Proxies selects them; empty: all.
	Proxies string `json:"proxies"`
	// Endpoints: they are pinned, too.
	Endpoints bool      `json:"endpoints,omitempty"`
	Since     time.Time `json:"since"`
	// Note says what is to be known of it, such as that it won't outlive a restart.
	Note string `json:"note,omitempty"`
	// Pinned are the connected proxies that it serves.
	Pinned []PinnedProxy `json:"pinned"`
}

// PinnedProxy is a proxy that a pin serves.
type PinnedProxy struct {
	Node       string `json:"node"`
	Connection uint64 `json:"connection"`
	// Types says by type where what it gets comes from: own (it was served that itself), view
	// (others of its view were), or live (neither, or what is never kept).
	Types map[string]string `json:"types"`
}
