package server

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/mask"
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
	ports *ports
	host  *host.Host
	swap  *swap.Swapper
	xds   *xds.Server
	// secrets are left out of what plugins say.
	secrets *mask.Secrets
	// file is the plugins.yaml that is followed; empty: there is none.
	file string
}

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

// Plugins implements admin.Source.
func (p *pages) Plugins() []admin.Plugin {
	rows, loads := p.PluginRows(), p.host.Loads()
	var exposed []string
	if p.file != "" {
		exposed = host.Exposed(p.file)
	}
	found := map[string]admin.Plugin{}
	for _, s := range p.host.Status() {
		r := rows[s.Name]
		found[s.Name] = admin.Plugin{
			Name: s.Name, Kind: s.Kind, Carrier: s.Carrier, At: s.At, State: string(s.State), Since: s.Since, Plugin: s.Plugin, Version: s.Version,
			PID: s.PID, Rows: r.Rows, Stale: !r.Stale.Since.IsZero(), StaleSince: utc(r.Stale.Since), StaleWhy: r.Stale.Why, LastSign: utc(r.Sign), Revision: r.Revision, Restarts: s.Restarts, Memory: s.Memory, LastError: s.LastError,
			Exposed: slices.Concat(exposed, s.Exposed), User: s.User, Sandbox: s.Sandbox.InForce, Lacking: s.Sandbox.Lacking,
			Withheld: r.Withheld, Faults: r.Faults, Held: r.Held, Away: r.Away, Load: loads[s.Name],
		}
	}
	var all []admin.Plugin
	for _, e := range p.swap.Entries() {
		v, runs := found[e.Name]
		if !runs {
			v = admin.Plugin{Name: e.Name, Kind: string(e.Kind), Carrier: e.Carrier(), At: e.At.String(), State: "disabled"}
			if e.ForEach != nil && !e.Disabled {
				v.State, v.Faults = "for each row of "+e.ForEach.Table, misfits(p.swap.Misfits(), e.Name)
			}
		}
		if last := p.swap.History(e.Name); len(last) > 0 {
			v.LastChange = last[len(last)-1].Line()
		}
		all = append(all, p.masked(v))
	}
	return all
}

// rows says what became of a plugin's rows, and of what it made none.
func (p *pages) rows(plugin string) ([]admin.TableRows, []admin.DroppedRows) {
	dropped := admin.Dropped(p, plugin)
	for i := range dropped {
		dropped[i].Example = p.secrets.Text(dropped[i].Example)
	}
	return p.TableRows(plugin), dropped
}

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
