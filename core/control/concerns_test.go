package control

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// TestConcerns: a refusal is about a switch if the stream has something of what that changed, and
// has not accepted it. Who came later can't have had what went.
func TestConcerns(t *testing.T) {
	old, late := &connection{}, &connection{}
	for _, conn := range []*connection{old, late} {
		conn.subs = map[string]subscription{typeCDS: {wildcard: true}}
		conn.visible = map[string]*view.Snapshot{typeCDS: view.NewSnapshot(nil, nil, true)}
		conn.outcomes = map[string]outcome{}
	}
	r := &refusals{from: 5, changed: map[*connection]map[string]changes{old: {typeCDS: {"gone": ""}}}}
	if !r.concerns(old, xds.Outcome{Type: typeCDS, Number: 5}) {
		t.Error("a stream lost something by the switch, and its refusal is not about that")
	}
	if r.concerns(old, xds.Outcome{Type: typeCDS, Number: 4}) {
		t.Error("of a revision before the switch")
	}
	if r.concerns(late, xds.Outcome{Type: typeCDS, Number: 5}) {
		t.Error("a stream that came later lost nothing")
	}
	old.outcomes[typeCDS] = outcome{revision: 5}
	if r.concerns(old, xds.Outcome{Type: typeCDS, Number: 6}) {
		t.Error("it has accepted that")
	}
}
