package state

import (
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Metrics takes what Control counts. All methods must be quick and must not block.
type Metrics interface {
	Committed(kind string)                  // full, endpoints, overtaking
	Served(kind string, took time.Duration) // a revision was served
	// Reached: all connections that a revision concerned have answered it.
	Reached(kind string, revision uint64, took time.Duration)
	Partial(plugin string)                     // a revision was served without it
	Fault(plugin string)                       // it reported failed work
	Broken(plugin string)                      // its session ended because it broke a rule
	Hidden(rows int)                           // rows that another shard's row hides
	Debounced(waited time.Duration)            // from the first change to the commit
	Woken(connections int, changedViews int)   // by one revision
	Unknown(plugin string, what string, n int) // messages skipped
	Crossed(plugin, limit string)              // it did not keep a limit that is no reason to end it
	Authenticated(plugin, verdict string)      // an authenticator was asked: accepted, refused, unanswered
	// Changed: a commit changed rows of a table, so many of those that sources publish.
	Changed(table string, added, changed, removed int)
	// Answered: a connection has all of a revision, so long after the first of its changes came.
	Answered(took time.Duration)
	// Measured: a plugin reports metrics; how many of them are not taken.
	Measured(plugin string, samples []*pb.Sample) (refused int)
	Retained(views int, bytes int64) // views that are kept though nobody is in them, and what they count
}

// NoMetrics counts nothing.
type NoMetrics struct{}

var _ Metrics = NoMetrics{}

// Committed implements Metrics.
func (NoMetrics) Committed(string) {}

// Served implements Metrics.
func (NoMetrics) Served(string, time.Duration) {}

// Reached implements Metrics.
func (NoMetrics) Reached(string, uint64, time.Duration) {}

// Partial implements Metrics.
func (NoMetrics) Partial(string) {}

// Fault implements Metrics.
func (NoMetrics) Fault(string) {}

// Broken implements Metrics.
func (NoMetrics) Broken(string) {}

// Hidden implements Metrics.
func (NoMetrics) Hidden(int) {}

// Debounced implements Metrics.
func (NoMetrics) Debounced(time.Duration) {}

// Woken implements Metrics.
func (NoMetrics) Woken(int, int) {}

// Unknown implements Metrics.
func (NoMetrics) Unknown(string, string, int) {}

// Crossed implements Metrics.
func (NoMetrics) Crossed(string, string) {}

// Authenticated implements Metrics.
func (NoMetrics) Authenticated(string, string) {}

// Changed implements Metrics.
func (NoMetrics) Changed(string, int, int, int) {}

// Answered implements Metrics.
func (NoMetrics) Answered(time.Duration) {}

// Measured implements Metrics.
func (NoMetrics) Measured(string, []*pb.Sample) int { return 0 }

// Retained implements Metrics.
func (NoMetrics) Retained(int, int64) {}
