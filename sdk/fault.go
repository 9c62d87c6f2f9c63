package sdk

import (
	"errors"
	"math/bits"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Fault is a piece of a deriver's work that failed and kept its last good result, while the rest
// went on. Derive returns those that stand at the revision, joined with errors.Join; the core shows
// them until a Derive doesn't return them.
type Fault struct {
	// What failed, for people: `ServiceEntry default/reviews`.
	What string
	Err  error
	// Rows are those at fault.
	Rows []state.Name
}

// Error implements error.
func (f *Fault) Error() string { return f.What + ": " + f.Err.Error() }

// Unwrap returns the error's cause.
func (f *Fault) Unwrap() error { return f.Err }

func (f *Fault) proto() *pb.Fault {
	out := &pb.Fault{What: f.What, Reason: f.Err.Error()}
	for _, n := range f.Rows {
		out.Rows = append(out.Rows, &pb.RowName{Table: n.Table, Key: n.Key})
	}
	return out
}

// Bounds of what a Done says of faults: it has to fit into a message.
const (
	maxFaults = 256
	maxReason = 1024
)

// bounded cuts a list, and reasons, that are too long.
func bounded(list []*pb.Fault) []*pb.Fault {
	if more := len(list) - maxFaults; more > 0 {
		about := 1 << (bits.Len(uint(more)) - 1) // not each number of them is news
		list = append(list[:maxFaults:maxFaults], &pb.Fault{What: "and more", Reason: text.Of(about, " others or more: too many to be told")})
	}
	for _, f := range list {
		if len(f.Reason) > maxReason {
			f.Reason = strings.ToValidUTF8(f.Reason[:maxReason], "") + "…"
		}
	}
	return list
}

// faults takes what Derive returned apart. It reports whether that is nothing but faults (or nil),
// so that the work counts; any other error is one of the whole work.
func faults(err error) (list []*pb.Fault, partial bool) {
	if err == nil {
		return nil, true
	}
	if f, ok := err.(*Fault); ok {
		return []*pb.Fault{f.proto()}, true
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		var f *Fault
		if errors.As(err, &f) {
			return []*pb.Fault{f.proto()}, false
		}
		return []*pb.Fault{{What: "derive", Reason: err.Error()}}, false
	}
	partial = true
	for _, e := range joined.Unwrap() {
		more, ok := faults(e)
		list, partial = append(list, more...), partial && ok
	}
	return list, partial
}

func rowNames(names []state.Name) []*pb.RowName {
	rows := make([]*pb.RowName, len(names))
	for i, n := range names {
		rows[i] = &pb.RowName{Table: n.Table, Key: n.Key}
	}
	return rows
}
