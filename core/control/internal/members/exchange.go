package members

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
)

// Probed is what a look ends with.
func Probed(err error) bool { return errors.Is(err, errProbed) }

// errProbed has the rows put back that stood in for a plugin's.
var errProbed = errors.New("it was only looked at")

// Probe is a look at what proxies would lose if other rows stood in a plugin's place.
type Probe struct {
	rs *Removals
	of *removal
	// Done is told once the rows are put back.
	Done <-chan error
	// Why is what speaks against it, to be read after Done.
	Why []string
}

// Probe begins to find out what proxies would lose if a trial took its plugin's place: its rows
// stand there in a revision that nobody is shown, and the plugin's own are put back as those of one
// that is not removed after all. known: no revision is needed, and why is what speaks against it.
func (rs *Removals) Probe(t *Candidate) (p *Probe, why []string, known bool) {
	k := rs.state.Roster.Plugins[t.Known.Name()]
	if t.Known.Session == nil || k == nil || !state.Publishes(t.Known) || rs.Pending != nil {
		return nil, nil, true
	}
	after := t.Known.Session.Shadow.Rows()
	d := guard.Rows(rs.state.Env.Pending.Shard(k.Shard), after, beside(rs.state.Env.Committed, k.Shard))
	takes := func(table guard.TableDifference) bool { return table.Removed+table.Changed > 0 }
	if !slices.ContainsFunc(d.Tables, takes) {
		return nil, nil, true
	}
	byRows := rs.last(d)
	if rs.losses.Holds.Of(k.Name()) != nil || !rs.streams.AnySees() || len(rs.state.Roster.Absent()) > 0 {
		return nil, byRows, true
	}
	if after == nil {
		after = environment.Tables{}
	}
	now := rs.state.Clock.Now()
	p = &Probe{rs: rs}
	p.of = &removal{known: k, since: now, until: now.Add(rs.holdMax), Done: make(chan error, 1), instead: after, decide: func(why []string) error {
		if p.Why = why; !p.of.aside || len(rs.state.Course.Flight.Late()) > 0 {
			p.Why = byRows // it could not be found out
		}
		return errProbed
	}}
	p.Done, rs.Pending = p.of.Done, p.of
	return p, nil, false
}

// Stop ends it, as nobody waits for it.
func (p *Probe) Stop(why error) { p.rs.Stays(p.of, why) }

// last says of which tables, that somebody reads, no row would be left.
func (rs *Removals) last(d *guard.Difference) (why []string) {
	read := rs.losses.TablesRead()
	for _, t := range d.Tables {
		if read[t.Table] && t.After == 0 && t.Before > 0 {
			noun := t.Table[strings.LastIndexByte(t.Table, '/')+1:]
			why = append(why, fmt.Sprintf("all its %d %s would go, and what proxies would lose is not known", t.Before, guard.Plural(noun, t.Before)))
		}
	}
	return why
}
