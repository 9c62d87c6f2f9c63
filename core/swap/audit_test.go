package swap

import (
	"reflect"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// What becomes of a change is kept with who wanted it and what differs; a dry run isn't, and a
// rollback is nobody's but the core's.
func TestAudit(t *testing.T) {
	h, _, _ := remembering()
	h.audit = audit.New("", nil, h.log)
	last := &manifest.Entry{Name: "a", Process: &manifest.Process{Command: "./old"}, SHA256: "01"}
	e := &manifest.Entry{Name: "a", Process: &manifest.Process{Command: "./new"}, SHA256: "02", Config: manifest.JSON(`{"token": "x"}`)}
	operator := audit.Acting(t.Context(), "somebody")
	c := h.open(operator, doSwap, last, e, Options{Force: true})
	for _, to := range []State{Starting, Syncing, Comparing, Switched} {
		c.step(to)
	}
	c.step(RolledBack, "too many refused it")
	dry := h.open(operator, doSwap, last, e, Options{DryRun: true})
	dry.step(Starting)
	dry.step(Failed, "it ended")
	h.open(operator, doRemove, last, last, Options{asked: "disable"}).step(Refused, "a guard")

	got := h.audit.Kept("a").Entries
	old, other := &audit.Program{Name: "process ./old", SHA256: "01"}, &audit.Program{Name: "process ./new", SHA256: "02"}
	keys := []string{"process", "config", "sha256"}
	want := []audit.Entry{
		{Who: audit.Who{By: "somebody"}, What: "swap", Plugin: "a", From: old, To: other, Changed: keys, Force: true, Outcome: "switched"},
		{
			Who: audit.Who{By: audit.ByRollback}, What: "rollback", Plugin: "a", From: other, To: old, Changed: keys,
			Outcome: "rolled back", Reasons: []string{"too many refused it"},
		},
		{Who: audit.Who{By: "somebody"}, What: "disable", Plugin: "a", From: old, Outcome: "refused", Reasons: []string{"a guard"}},
	}
	for i := range got {
		got[i].At = want[0].At
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
