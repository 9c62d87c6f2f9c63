package report

import "time"

// StageState is how far the stage of a push is.
type StageState string

// States of a stage. Off: pushes have no stages.
const (
	Off       StageState = "off"
	Idle      StageState = "idle"
	Staged    StageState = "staged"
	Withdrawn StageState = "withdrawn"
)

// Stage is what is known of the stage of a push.
type Stage struct {
	State StageState `json:"state"`
	// Base is the revision that was served before it, Latest the newest one that is tried.
	Base   uint64 `json:"base,omitempty"`
	Latest uint64 `json:"latest,omitempty"`
	// Since is when the stage began, Began when the latest revision began to be tried, Quiet since
	// when all of the first proxies have acknowledged it, Ends when all proxies are to get it.
	Since time.Time `json:"since,omitzero"`
	Began time.Time `json:"began,omitzero"`
	Quiet time.Time `json:"quiet,omitzero"`
	Ends  time.Time `json:"ends,omitzero"`
	// First is how many of the first proxies are connected, Behind how many of them have not
	// acknowledged the latest revision.
	First  int `json:"first"`
	Behind int `json:"behind"`
	// Why says why it was withdrawn, or what it waits for.
	Why string `json:"why,omitempty"`
	// Metric is what was read last.
	Metric *Reading `json:"metric,omitempty"`
}

// Reading is a value of the metric that a stage watches, as Prometheus writes it (which JSON has no
// numbers for, such as +Inf), or why there is none.
type Reading struct {
	Value string    `json:"value,omitempty"`
	Error string    `json:"error,omitempty"`
	At    time.Time `json:"at"`
}

// Rollout is how far the stage of a push is, and for whom.
type Rollout struct {
	Stage
	// Held are the connected proxies that are served what was served before it.
	Held []PinnedProxy `json:"held"`
}
