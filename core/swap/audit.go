package swap

import (
	"cmp"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// toAudit is what is known of a change when it begins. A dry run is none.
func toAudit(what string, last, e *manifest.Entry, o Options) audit.Entry {
	if o.DryRun {
		return audit.Entry{}
	}
	is := audit.Entry{What: cmp.Or(o.asked, what), Plugin: e.Name, Force: o.Force, Ephemeral: o.Ephemeral}
	if what != doAdd {
		is.From = programOf(last)
	}
	if what != doRemove {
		is.To = programOf(e)
	}
	if what == doSwap || what == doRollback {
		is.Changed = manifest.Differing(last, e)
	}
	return is
}

func programOf(e *manifest.Entry) *audit.Program {
	if e == nil {
		return nil
	}
	on := *e
	on.Disabled = false
	p := &audit.Program{Name: describe(&on), SHA256: string(e.SHA256)}
	if e.Wasm != nil {
		p.SHA256 = cmp.Or(p.SHA256, string(e.Wasm.SHA256))
	}
	return p
}
