package state

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
)

// Shown is what connections are to get next of each type.
type Shown = guard.Shown[*Connection]

// Held is a hold as people see it.
type Held struct {
	Plugin string    `json:"plugin"`
	Since  time.Time `json:"since"`
	// Rows is how many changes of its rows are kept aside, Proxies how many keep what they had, or
	// would lose something by the rows.
	Rows    int `json:"rows,omitempty"`
	Proxies int `json:"proxies,omitempty"`
	// Reasons say what would go.
	Reasons []string `json:"reasons"`
	// Difference of its rows, where it is asked for.
	Difference *guard.Difference `json:"difference,omitempty"`
}

// With adds what the held rows would change.
func (h Held) With(d *guard.Difference) Held {
	h.Difference = d
	return h
}
