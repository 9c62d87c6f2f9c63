package status

import (
	"cmp"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// mostRefused is how many rows of a plugin are named that are refused because a namespace is full.
const mostRefused = 1000

// crowded adds, to those plugins whose rows are refused because a namespace is full, why.
func (pg *Pages) crowded(out map[string]PluginRows) {
	for _, f := range pg.state.Env.Spaces.Crowded() {
		of, since := map[string]bool{}, pg.crowds.Since(f).UTC()
		for r := range pg.state.Env.Spaces.Refused(f.Namespace, f.Policies) {
			of[r.Shard.Name] = true
			rows := out[r.Shard.Name]
			if len(rows.Refused) == mostRefused {
				continue
			}
			rows.Refused = append(rows.Refused, report.RefusedRow{
				RowName: report.RowName{Table: r.Table, Key: r.Key}, Source: r.Row.Source, Reason: serving.Unserved(f, r), Kept: r.Kept, Since: since,
			})
			out[r.Shard.Name] = rows
		}
		for plugin := range of {
			rows := out[plugin]
			rows.Faults = append(rows.Faults, report.WorkFault{What: "namespace " + f.Namespace, Reason: serving.Full(f), Since: since})
			out[plugin] = rows
		}
	}
	for _, rows := range out {
		slices.SortFunc(rows.Refused, func(a, b report.RefusedRow) int {
			return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Key, b.Key))
		})
	}
}
