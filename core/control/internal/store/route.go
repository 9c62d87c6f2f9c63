package store

import (
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
)

const (
	// MaxObject is how many bytes an object may have: it must fit into a message with the rest.
	MaxObject = carrier.MaxMessage - 16<<10
	// maxOwed and maxOwedBytes are how many requests, and bytes of them, a writer may have in hand.
	maxOwed, maxOwedBytes = 256, 8 << 20
)

// Writer is a plugin that takes writes of a table.
type Writer[S comparable] struct {
	Name string
	// Session is there if it Lives; it Sleeps: it is started when it is needed.
	Session       S
	Lives, Sleeps bool
	// Call is how long it may take for an answer.
	Call time.Duration
}

// Route is where a request is to go.
type Route[S comparable] struct {
	// Asker is the plugin that asks. It is Served, as its candidate isn't, and plugins.yaml has
	// Allowed it.
	Asker           string
	Served, Allowed bool
	// Writers are the plugins that say that they take writes of the table, in declared order.
	Writers []Writer[S]
	// Publisher is who has objects of the table, if nobody takes writes of it, and what plugin that
	// is; empty: nobody.
	Publisher, Plugin string
}

// refuse says why a request can't be sent on; CodeOk: it can, to the first of the writers. wake:
// that sleeps, and is needed. open are the asker's requests that are on their way.
func (r Route[S]) refuse(m *pb.Store, open int) (code pb.Code, why string, wake bool) {
	table := budget.Clip(m.Table, 300)
	switch {
	case !r.Served:
		return pb.CodeUnavailable, fmt.Sprintf("plugin %s is not served (yet), and changes nothing meanwhile", r.Asker), false
	case !r.Allowed:
		return pb.CodeForbidden, fmt.Sprintf(
			"plugins.yaml does not let plugin %s use objects of %s where they are kept: add `allow: {store: [%s]}` to its entry",
			r.Asker, table, table,
		), false
	case len(m.Object) > MaxObject:
		return pb.CodeInvalid, fmt.Sprintf("has %d bytes, which is more than the %d that an object may have", len(m.Object), MaxObject), false
	case open >= carrier.MaxStores:
		return pb.CodeUnavailable, fmt.Sprintf("plugin %s has %d requests on their way already: wait for an answer", r.Asker, carrier.MaxStores), false
	case len(r.Writers) > 1:
		return pb.CodeUnsupported, Many(table, r.Writers), false
	case len(r.Writers) == 0 && r.Publisher == "":
		return pb.CodeUnsupported, fmt.Sprintf("no plugin of plugins.yaml takes writes of %s", table), false
	case len(r.Writers) == 0:
		return pb.CodeUnsupported, fmt.Sprintf("no plugin of plugins.yaml takes writes of %s: what plugin %s (%s) publishes of it is changed at its source",
			table, r.Publisher, r.Plugin), false
	}
	switch w := r.Writers[0]; {
	case !w.Lives && w.Sleeps:
		return pb.CodeUnavailable, fmt.Sprintf("plugin %s, which takes writes of %s, sleeps, and is being started", w.Name, table), true
	case !w.Lives:
		return pb.CodeUnavailable, fmt.Sprintf("plugin %s, which takes writes of %s, is away", w.Name, table), false
	}
	return pb.CodeOk, "", false
}

// Many says that several plugins take writes of a table.
func Many[S comparable](table string, writers []Writer[S]) string {
	names := make([]string, len(writers))
	for i, w := range writers {
		names[i] = w.Name
	}
	return fmt.Sprintf("plugins %s all take writes of %s: at most one may", strings.Join(names, " and "), table)
}
