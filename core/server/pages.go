package server

import (
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/host"
)

// pages is what the admin pages are made from.
type pages struct {
	*control.Control
	host *host.Host
}

// Plugins implements admin.Source.
func (p *pages) Plugins() []admin.Plugin {
	rows := p.PluginRows()
	var all []admin.Plugin
	for _, s := range p.host.Status() {
		r := rows[s.Name]
		all = append(all, admin.Plugin{
			Name: s.Name, Kind: s.Kind, Carrier: s.Carrier, At: s.At, State: string(s.State), Since: s.Since, Plugin: s.Plugin, Version: s.Version,
			PID: s.PID, Rows: r.Rows, Stale: r.Stale, Revision: r.Revision, Restarts: s.Restarts, Memory: s.Memory, LastError: s.LastError,
			Withheld: r.Withheld, Faults: r.Faults,
		})
	}
	return all
}
