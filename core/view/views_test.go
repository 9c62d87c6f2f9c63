package view

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// newViews returns the empty views of a session that trusts no plugin yet.
func newViews() *Views {
	return NewViews(NewBodies(Types{Trusted: map[string]bool{}}), NewRefusals())
}

// model is what the views of a session should hold, kept the plain way.
type model struct {
	parts map[uint64]map[string]string
	own   map[uint64]map[string]string
	lists map[uint64][]uint64
}

func (m *model) resources(v uint64) map[string]string {
	out := map[string]string{}
	for i := len(m.lists[v]) - 1; i >= 0; i-- {
		maps.Copy(out, m.parts[m.lists[v][i]])
	}
	maps.Copy(out, m.own[v])
	maps.DeleteFunc(out, func(_, content string) bool { return content == "" })
	return out
}

// TestRandomViews compares views with the plain model over random changes, and looks for bodies
// that stay.
func TestRandomViews(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		vs := newViews()
		m := &model{map[uint64]map[string]string{}, map[uint64]map[string]string{}, map[uint64][]uint64{}}
		bodies, next := map[string]uint64{}, uint64(0)
		for v := range uint64(3) {
			vs.Describe(&pb.View{View: v + 1, Type: "t"})
			m.own[v+1] = map[string]string{}
		}
		for p := range uint64(4) {
			m.parts[p+1] = map[string]string{}
		}
		entries := func(set map[string]string) (ups []*pb.Entry, removes []string) {
			for range r.IntN(4) {
				name, content := fmt.Sprint("n", r.IntN(10)), fmt.Sprint(r.IntN(4))
				switch r.IntN(4) {
				case 0:
					removes = append(removes, name)
				case 1:
					ups = append(ups, &pb.Entry{Name: name})
					set[name] = ""
					continue
				default:
					id := bodies[name+content]
					if id == 0 {
						next++
						id = next
						bodies[name+content] = id
						if err := vs.bodies.Store(&pb.Bodies{
							Bodies: []*pb.Body{{Id: id, Bytes: []byte(content)[:0], More: true}, {Id: id, Bytes: []byte(content)}},
						}); err != nil {
							t.Fatal(err)
						}
					}
					ups = append(ups, &pb.Entry{Name: name, Body: id})
					set[name] = content
				}
			}
			for _, n := range removes { // upserts count after removes of the same message
				if !contains(ups, n) {
					delete(set, n)
				}
			}
			return ups, removes
		}
		for step := range 200 {
			switch r.IntN(3) {
			case 0:
				p := uint64(r.IntN(4) + 1)
				used := false
				for _, l := range m.lists {
					for _, id := range l {
						used = used || id == p
					}
				}
				if !used {
					continue // a part that no view lists is forgotten
				}
				ups, removes := entries(m.parts[p])
				if err := vs.Part(&pb.Part{Part: p, Type: "t", Upserts: ups, Removes: removes}); err != nil {
					t.Fatal(err)
				}
			case 1:
				v := uint64(r.IntN(3) + 1)
				ups, removes := entries(m.own[v])
				if err := vs.Change(&pb.Change{View: v, Type: "t", Upserts: ups, Removes: removes}); err != nil {
					t.Fatal(err)
				}
			case 2:
				v := uint64(r.IntN(3) + 1)
				var list []uint64
				for _, i := range r.Perm(4)[:r.IntN(4)] {
					list = append(list, uint64(i+1))
				}
				m.lists[v] = list
				if err := vs.Change(&pb.Change{View: v, Type: "t", SetParts: true, Parts: list}); err != nil {
					t.Fatal(err)
				}
			}
			vs.Publish()
			vs.Expire(vs.Unused())
			for p := range uint64(4) {
				if vs.parts[p+1] == nil {
					m.parts[p+1] = map[string]string{}
				}
			}
			freed := vs.bodies.Freed()
			vs.bodies.Collect(freed)
			for _, id := range freed {
				maps.DeleteFunc(bodies, func(_ string, b uint64) bool { return b == id })
			}
			for v := range uint64(3) {
				got := map[string]string{}
				for _, b := range vs.Get("t", v+1).Snapshot().Bodies() {
					got[b.Name()] = string(b.Value())
				}
				if diff := cmp.Diff(m.resources(v+1), got); diff != "" {
					t.Fatalf("seed %d step %d view %d: %s", seed, step, v+1, diff)
				}
			}
			if n, _ := vs.bodies.Len(); n != len(bodies) {
				t.Fatalf("seed %d step %d: %d bodies are kept, the plugin knows %d", seed, step, n, len(bodies))
			}
		}
		for _, v := range vs.All() {
			vs.Forget(v)
		}
		vs.Publish()
		vs.Expire(vs.Unused())
		vs.bodies.Collect(vs.bodies.Freed())
		if n, bytes := vs.bodies.Len(); n != 0 || len(vs.parts) != 0 || len(vs.bodies.refs) != 0 {
			t.Fatalf("seed %d: %d bodies (%d bytes) and %d parts are left over", seed, n, bytes, len(vs.parts))
		}
	}
}

func contains(entries []*pb.Entry, name string) bool {
	for _, e := range entries {
		if e.Name == name {
			return true
		}
	}
	return false
}

func TestMissingBodies(t *testing.T) {
	vs := newViews()
	vs.Describe(&pb.View{View: 1, Type: "t"})
	err := vs.Change(&pb.Change{View: 1, Type: "t", Upserts: []*pb.Entry{{Name: "a", Body: 7}}})
	if missing, ok := err.(*MissingError); !ok || missing.Bodies[0] != 7 {
		t.Fatalf("error %v", err)
	}
	if err := vs.Change(&pb.Change{View: 2, Type: "t"}); err == nil {
		t.Error("a view that was never described took a change")
	}
}
