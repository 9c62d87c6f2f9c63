package server

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// middle is what pages show of core/control.
type middle interface {
	Ready() []string
	Revision() admin.Revision
	Views() []admin.View
	Streams() []admin.Stream
	Tables() []admin.Table
	TableRows(plugin string) []admin.TableRows
	Rows(table string) []*pb.Row
	PluginRows() map[string]control.PluginRows
	Dump(nodeID string) ([]admin.TypeDump, bool)
	// Holding is for the page that says that it is ready, which asks for it where there is one.
	Holding() []string
}

// pages is what the admin pages are made from.
type pages struct {
	middle
	*operations.Explainer
	*operations.Past
	stages *operations.Rollout
	ports  *ports
	host   *host.Host
	swap   *swap.Swapper
	xds    *xds.Server
	// secrets are left out of what plugins say.
	secrets *mask.Secrets
	// file is the plugins.yaml that is followed; empty: there is none.
	file string
}

// Rollout implements admin.Source.
func (p *pages) Rollout() report.Rollout { return p.stages.Shown() }

// Plans implements admin.Planner.
func (p *pages) Plans() report.Plans { return maskedPlans(p.secrets, p.swap.Plans()) }

// maskedPlans are dry runs as they may be shown: what plugins said that were only compared may have
// secrets in it.
func maskedPlans(secrets *mask.Secrets, all report.Plans) (masked report.Plans) {
	text, err := secrets.JSON(all)
	if err == nil {
		err = json.Unmarshal(text, &masked)
	}
	if err != nil { // it can't be masked, so it isn't shown
		return report.Plans{Making: []report.Plan{}, Ended: []report.Plan{}}
	}
	return masked
}

// Planning implements admin.Planner.
func (p *pages) Planning() (making int, moves uint64) { return p.swap.Planning() }

// Ready implements admin.Source: where memory is short streams had better begin elsewhere.
func (p *pages) Ready() []string {
	reasons := p.middle.Ready()
	if len(reasons) == 0 {
		reasons = p.ports.ready()
	}
	if why := p.xds.Overloaded(); why != "" {
		reasons = append(reasons, why)
	}
	return reasons
}

// Ledger implements admin.Insight.
func (p *pages) Ledger(node string) []xds.StreamLedger { return p.xds.Ledger(node) }

// Streamed implements admin.Insight. What a stream refuses it goes on refusing while that is held
// for its view, though it is sent no more.
func (p *pages) Streamed() []xds.StreamStatus {
	refused := map[uint64]map[string]admin.StreamType{}
	for _, s := range p.Streams() {
		refused[s.Connection] = s.Types
	}
	all := p.xds.Status()
	for _, s := range all {
		for i, t := range s.Types {
			s.Types[i].Refused = cmp.Or(t.Refused, refused[s.Connection][t.Type].Refused)
		}
	}
	return all
}

// Plugins implements admin.Source.
func (p *pages) Plugins() []admin.Plugin {
	rows, loads := p.PluginRows(), p.host.Loads()
	var exposed []string
	if p.file != "" {
		exposed = host.Exposed(p.file)
	}
	running := map[string]host.Status{}
	for _, s := range p.host.Status() {
		running[s.Entry.Name] = s
	}
	var all []admin.Plugin
	for _, e := range p.swap.Entries() {
		s, runs := running[e.Name]
		if runs {
			e = s.Entry
		}
		v := admin.Plugin{Name: e.Name, Kind: string(e.Kind), Carrier: e.Carrier(), At: e.At.String(), State: "disabled", Off: e.Off}
		if e.Plugin != "" {
			v.Artifact = string(e.Plugin)
			if is := e.Artifact; is != nil {
				v.Artifact, v.Signed = string(e.Plugin.At(is.Digest)), is.Signed
			}
		}
		switch {
		case runs:
			of(&v, s, rows[e.Name])
			v.Exposed, v.Load = slices.Concat(exposed, s.Exposed), loads[e.Name]
		case e.ForEach != nil && !e.Disabled:
			v.State, v.Faults = "for each row of "+e.ForEach.Table, misfits(p.swap.Misfits(), e.Name)
		}
		if last := p.swap.History(e.Name); len(last) > 0 {
			v.LastChange = last[len(last)-1].Line()
		}
		all = append(all, p.masked(v))
	}
	return all
}

// of says what became of a plugin's process, and of what it published.
func of(v *admin.Plugin, s host.Status, r control.PluginRows) {
	v.Off = ""
	v.State, v.Since, v.Plugin, v.Version, v.PID = string(s.State), s.Since, s.Plugin, s.Version, s.PID
	v.Restarts, v.Memory, v.LastError, v.User = s.Restarts, s.Memory, s.LastError, s.User
	v.Sandbox, v.Lacking = s.Sandbox.InForce, s.Sandbox.Lacking
	v.Rows, v.Stale, v.StaleSince, v.StaleWhy = r.Rows, !r.Stale.Since.IsZero(), utc(r.Stale.Since), r.Stale.Why
	v.LastSign, v.Revision = utc(r.Sign), r.Revision
	v.Reads, v.Publishes = r.Reads, r.Publishes
	v.Withheld, v.Faults, v.Held, v.Away, v.Refused = r.Withheld, r.Faults, r.Held, r.Away, r.Refused
}

// rows says what became of a plugin's rows, and of what it made none.
func (p *pages) rows(plugin string) ([]admin.TableRows, []admin.DroppedRows) {
	dropped := admin.Dropped(p, plugin)
	for i := range dropped {
		dropped[i].Example = p.secrets.Text(dropped[i].Example)
	}
	return p.TableRows(plugin), dropped
}

// SecretTable implements admin.Source.
func (p *pages) SecretTable(name string) bool { return p.host.SecretTable(name) }

// misfits are the rows that an entry has no instance for.
func misfits(all []manifest.Misfit, entry string) (out []admin.WorkFault) {
	for _, m := range all {
		if m.Entry == entry {
			out = append(out, admin.WorkFault{What: "row " + m.Key, Reason: m.Reason})
		}
	}
	return out
}

// utc keeps the zero time.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}

// masked is a plugin as it may be shown: its own words may have its secrets in them.
func (p *pages) masked(v admin.Plugin) admin.Plugin {
	v.StaleWhy = p.secrets.Text(v.StaleWhy)
	v.LastError, v.LastChange = p.secrets.Text(v.LastError), p.secrets.Text(v.LastChange)
	v.Plugin, v.Version = p.secrets.Text(v.Plugin), p.secrets.Text(v.Version)
	if v.Away != nil {
		v.Away.Why = p.secrets.Text(v.Away.Why)
	}
	v.Faults = slices.Clone(v.Faults)
	for i, f := range v.Faults {
		v.Faults[i].What, v.Faults[i].Reason = p.secrets.Text(f.What), p.secrets.Text(f.Reason)
	}
	return v
}
