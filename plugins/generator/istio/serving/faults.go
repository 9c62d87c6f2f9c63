package serving

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/routes"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// fault is something that keeps its last good result, and the rows at fault.
type fault struct {
	what string
	err  error
	rows []state.Name
}

// maxStanding is how many functions that failed are told.
const maxStanding = 100

// standing are the faults of now: functions that failed, and load assignments that Envoy would
// refuse.
func (e *Engine) standing() []fault {
	var all []fault
	for _, f := range e.holds.failures {
		now := fault{f.Function, f.Err, e.names(f.Read)}
		if refused := refusal(f.Err); refused != nil {
			now.err = refused
		}
		switch k := f.Key.(type) { // it is not whose all others are
		case patches.SpoiltChain:
			now.rows = rowsOf(config.EnvoyFilters, e.from.Patches.SpoiltBy(k)...)
		case routes.Delegated:
			now.rows = rowsOf(config.VirtualServices, k.Delegate)
		case routes.PatchedHost:
			now.rows = e.names(e.from.Routes.PatchedBy(k))
		case routes.Key:
			if k.View.Patches != "" {
				now.rows = e.names(e.from.Routes.Patches(k))
			}
		}
		if f.Key != nil {
			now.what = fmt.Sprintf("%s %v", f.Function, f.Key)
		}
		all = append(all, now)
	}
	if more := e.holds.more; more > 0 { // a power of two: it is told anew when it is another one
		all = append(all, fault{what: "and more", err: fmt.Errorf("%d others or more failed, too", 1<<(bits.Len(uint(more))-1))})
	}
	for _, f := range e.assignments.Faults() {
		all = append(all, fault{f.What, f.Err, f.Rows})
	}
	return all
}

// faults reports those of now.
func (e *Engine) faults(out sdk.Output) { e.reportFaults(e.standing(), out) }

// newFaults reports those of now if they are others than were reported last: what is made only when
// a proxy asks may fail as well.
func (e *Engine) newFaults(out sdk.Output) {
	if now := e.standing(); !slices.EqualFunc(now, e.reported, func(a, b fault) bool { return a.what == b.what && a.err.Error() == b.err.Error() }) {
		e.reportFaults(now, out)
	}
}

func (e *Engine) reportFaults(list []fault, out sdk.Output) {
	e.reported = list
	for _, f := range list {
		out.Fault(f.what, f.err, f.rows...)
	}
}

// refusal is what Envoy would say of what a function made; nil if it failed otherwise.
func refusal(err error) *encode.RefusedError {
	if p, ok := errors.AsType[*incr.PanicError](err); ok {
		err, _ = p.Value.(error)
	}
	refused, _ := errors.AsType[*encode.RefusedError](err)
	return refused
}

func rowsOf(table string, keys ...string) []state.Name {
	var out []state.Name
	for _, k := range keys {
		out = append(out, state.Name{Table: table, Key: k})
	}
	return out
}

// names are the rows among what was read that are rows of tables.
func (e *Engine) names(rows []incr.Row) []state.Name {
	var out []state.Name
	for _, r := range rows {
		if key, ok := r.Key.(string); ok && e.from.Tables.Load[r.Table] != nil {
			out = append(out, state.Name{Table: r.Table, Key: key})
		}
	}
	return out
}
