package kinds

import (
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

func TestFaultSet(t *testing.T) {
	now := time.Unix(100, 0)
	b := NewFaultSet(func() time.Time { return now })
	bad := Fault{File: "a.yaml", Line: 3, Column: 1, Kind: "Gateway", Name: "x", Message: "is wrong"}
	warned := Fault{File: "a.yaml", Line: 9, Column: 1, Severity: finding.Warning, Message: "is odd"}

	c := b.Show([]Fault{warned, bad})
	if len(c.Upserts) != 2 || c.Upserts[0].Key != "a.yaml:3:1" || len(c.New) != 2 || c.Healed {
		t.Errorf("first: %+v", c)
	}
	now = time.Unix(200, 0)
	moved := bad
	moved.Line = 5
	c = b.Show([]Fault{moved, warned})
	if len(c.Upserts) != 1 || c.Upserts[0].Key != "a.yaml:5:1" || len(c.Deletes) != 1 || c.Healed {
		t.Errorf("moved: %+v", c)
	}
	if since := b.shown["a.yaml:5:1"].Since; !since.Equal(time.Unix(100, 0)) {
		t.Errorf("a fault that moved is there since %v", since)
	}
	if c = b.Show([]Fault{warned}); !c.Healed || len(c.Deletes) != 1 {
		t.Errorf("healed: %+v", c)
	}
	if c = b.Show([]Fault{warned}); c.Healed || len(c.Upserts)+len(c.Deletes) > 0 {
		t.Errorf("nothing new: %+v", c)
	}
}

// TestFaultsOfTwoPlugins: what a plugin says of what another one reads has a key of its own.
func TestFaultsOfTwoPlugins(t *testing.T) {
	now := func() time.Time { return time.Unix(100, 0) }
	reads, judges := NewFaultSet(now), NewFaultSetBy("controller/gateway", now)
	of := Fault{File: "k8s://Gateway/a/b", Kind: "Gateway", Name: "b", Message: "is odd"}
	one, other := reads.Show([]Fault{of}), judges.Show([]Fault{of, of})
	if one.Upserts[0].Key != "k8s://Gateway/a/b" || len(other.Upserts) != 2 || other.Upserts[0].Key != "k8s://Gateway/a/b@controller/gateway" ||
		other.Upserts[1].Key != "k8s://Gateway/a/b@controller/gateway#2" || other.Upserts[0].Source != "k8s://Gateway/a/b" {
		t.Errorf("keys are %v and %v", one.Upserts, other.Upserts)
	}
}
