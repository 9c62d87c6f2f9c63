package control

import (
	"testing"
	"testing/synctest"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// TestSourceReadsBeforeItSyncs: a source that reads is sent, before the first revision, what
// sources that read nothing say of its tables, once they are in sync and not earlier; two that read
// each other's tables don't wait for each other.
func TestSourceReadsBeforeItSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mesh, keys2 := state.Expected{Name: "mesh", Kind: pb.KindConfig}, state.Expected{Name: "keys", Kind: pb.KindConfig}
		b := newBench(t, nil, memory, keys2, mesh)
		reader := func(reads, publishes string) *pb.Ready {
			return &pb.Ready{Reads: []*pb.Read{{Table: "mesh"}, {Table: reads}}, Publishes: []string{publishes}}
		}
		m, k := b.join("memory", reader("keys", "services")), b.join("keys", reader("services", "keys"))
		c := b.join("mesh", &pb.Ready{Publishes: []string{"mesh"}})
		c.rows("mesh", nil, row("mesh", "1"))
		if m.state() != nil || k.state() != nil {
			t.Error("a source was sent a state before the mesh's settings were in")
		}
		c.synced()
		for _, p := range []*plugin{m, k} {
			s := p.state()
			if s == nil || !s.Whole {
				t.Fatalf("its first state is %v", s)
			}
			if diff := cmp.Diff([]string{"mesh mesh=1"}, keys(s)); diff != "" {
				t.Error(diff)
			}
		}
		if b.Revision().Number != 0 {
			t.Error("a revision was made before all were in sync")
		}
		m.rows("services", nil, row("ns/a.com", "1"))
		m.synced()
		k.synced()
		if b.Revision().Number == 0 || len(b.Ready()) > 0 {
			t.Errorf("not ready: %v", b.Ready())
		}
		if diff := cmp.Diff([]string{"mesh mesh=1", "services ns/a.com=1"}, keys(k.state())); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSourceReadsWhatNobodyPublishes: then its first state comes as soon as all have started.
func TestSourceReadsWhatNobodyPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, memory, files)
		m := b.join("memory", &pb.Ready{Reads: []*pb.Read{{Table: "mesh"}}, Publishes: []string{"services"}})
		if m.state() != nil {
			t.Error("it was sent a state while nobody knew what the other one publishes")
		}
		b.join("files", readyFiles())
		if s := m.state(); s == nil || !s.Whole || len(s.Tables) > 0 {
			t.Errorf("its first state is %v", s)
		}
	})
}
