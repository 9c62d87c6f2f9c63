package control

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	carrier "github.com/coxswain-mesh/coxswain/sdk/session"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// Whatever a client sends, and however small the messages of the plugin are, its session goes on,
// and changes of others arrive.
func TestNoClientEndsASession(t *testing.T) {
	const large = 2 << 20
	connect := func(t *testing.T, w *world, n *corev3.Node) xds.Connection {
		conn, err := w.Connect(t.Context(), xds.Peer{Node: n}, func(xds.Wake) {})
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	refused := func(t *testing.T, conn xds.Connection) {
		t.Helper()
		if err := conn.Pull().Err; status.Code(err) != codes.InvalidArgument {
			t.Errorf("the stream ends with %v, want InvalidArgument", err)
		}
	}
	many := make([]*corev3.Extension, 0, large/20)
	for i := range cap(many) {
		many = append(many, &corev3.Extension{Name: fmt.Sprintf("extension-number-%07d", i)})
	}
	for name, abuse := range map[string]func(t *testing.T, w *world){
		"node": func(t *testing.T, w *world) {
			pad := &structpb.Struct{Fields: map[string]*structpb.Value{"PAD": structpb.NewStringValue(strings.Repeat("x", large))}}
			conn := connect(t, w, &corev3.Node{Id: "big", Metadata: pad})
			conn.Subscribe(typeA, true, nil)
			refused(t, conn)
			conn.Close()
		},
		"extensions": func(t *testing.T, w *world) {
			conn := connect(t, w, &corev3.Node{Id: "big", Extensions: many})
			conn.Subscribe(typeA, true, nil)
			refused(t, conn)
			conn.Close()
		},
		"name": func(t *testing.T, w *world) {
			long := strings.Repeat("n", large)
			w.proxy.Subscribe(typeA, true, []string{long})
			if b := w.proxy.Pull().Types[typeA].Get(long); b == nil || b.Exists() {
				t.Error("a name that nobody can be asked for is not answered as absent")
			}
			w.proxy.Subscribe(typeA, true, nil)
		},
		"names": func(_ *testing.T, w *world) {
			var names []string
			for i := range 40 {
				names = append(names, fmt.Sprintf("%02d", i)+strings.Repeat("n", 100<<10))
			}
			w.proxy.Subscribe(typeA, true, names)
			w.proxy.Subscribe(typeA, true, nil)
		},
		"report": func(_ *testing.T, w *world) {
			w.proxy.Report(xds.Outcome{Type: typeA, Refused: strings.Repeat("no ", large/3)})
		},
	} {
		for _, most := range []int{0, 4 << 10} {
			t.Run(fmt.Sprintf("%s/%d", name, most), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					held, ready := istio, readyIstio()
					held.Limits, ready.Reports = state.Limits{Message: most}, true
					w := worldOf(newBench(t, nil, memory, held), ready)
					abuse(t, w)
					for _, m := range w.g.take() {
						if m.Size() > min(carrier.MaxMessage, w.room()) {
							t.Errorf("the plugin was sent a message of %d bytes", m.Size())
						}
						if m.Want != nil {
							w.g.send(wanted(m.Want.Id, w.at))
						}
						if m.Report != nil && (!strings.HasPrefix(m.Report.Detail, "no no") || len(m.Report.Detail) > w.room()) {
							t.Errorf("the report has %d bytes of detail", len(m.Report.Detail))
						}
					}
					r := w.revise("2")
					w.g.send(body(2, "v2"), change(typeA, 1, r, &pb.Entry{Name: "a", Body: 2}))
					w.g.done(r)
					if s := w.proxy.Pull().Types[typeA].Get("a"); string(s.Value()) != "v2" {
						t.Errorf("the other's resource is %q", s.Value())
					}
					select {
					case err := <-w.g.end:
						t.Errorf("the session ended: %v", err)
					default:
					}
				})
			})
		}
	}
}

// A call that does not fit into a message fails, and not the session: a resource that is larger is
// one that this patch can't change.
func TestCallTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPatchWorld(t, nil)
		w.answer(w.asked())
		half := strings.Repeat("v", 600<<10)
		w.g.send(
			&pb.FromPlugin{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 7, Bytes: []byte(half), More: true}}}},
			&pb.FromPlugin{Bodies: &pb.Bodies{Bodies: []*pb.Body{{Id: 7, Bytes: []byte(half)}}}},
			change(typeT, 1, w.at, &pb.Entry{Name: "a-large", Body: 7}))
		w.g.send(body(8, "8"), change(typeT, 1, w.at, &pb.Entry{Name: "a8", Body: 8}))
		var asked []string
		for _, c := range w.asked() {
			asked = append(asked, c.Resources[0].Name)
		}
		if diff := cmp.Diff([]string{"a8"}, asked); diff != "" {
			t.Error(diff)
		}
		if len(w.upper.end) > 0 {
			t.Errorf("the session ended: %v", <-w.upper.end)
		}
		found := false
		for _, f := range w.PluginRows()["upper"].Faults {
			found = found || strings.Contains(f.Reason, "larger than 1 MiB")
		}
		if !found {
			t.Error("nothing says why the large resource is not patched")
		}
	})
}

// What a generator said of a view before it read that nobody is in it harms nobody, whenever it
// comes to count.
func TestChangeOfAViewThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r := w.revise("2")
		w.g.send(body(2, "v2"), change(typeA, 1, r, &pb.Entry{Name: "a", Body: 2}))
		w.m.rows("services", nil, row("ns/a.com", "3")) // so that it is given a next one as soon as it is done
		time.Sleep(11 * time.Second)                    // the revision goes out without it
		w.proxy.Close()
		w.g.take()
		w.g.done(r)
		time.Sleep(time.Second)
		next := w.g.state()
		if next == nil {
			t.Fatal("there is no next revision")
		}
		w.g.done(next.Revision)
		time.Sleep(20 * time.Second)
		if s := w.g.state(); s != nil {
			w.g.done(s.Revision)
		}
		w.g.send(change(typeA, 1, next.Revision, &pb.Entry{Name: "a", Body: 1})) // as an Overtake that ran beside all that may
		if len(w.g.end) > 0 {
			t.Errorf("the session ended: %v", <-w.g.end)
		}
	})
}

// A generator that places a connection into a view that the core has forgotten is asked again, and
// describes it.
func TestPlaceIntoAViewThatWasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.proxy.Close()
		time.Sleep(20 * time.Second)
		w.g.done(w.g.state().Revision)
		p := w.stream("q")
		p.Subscribe(typeA, true, nil)
		w.g.take()
		w.g.send(place(p.ID(), typeA, 1, w.at))
		var again bool
		for _, m := range w.g.take() {
			again = again || m.Attach != nil && m.Attach.Connection == p.ID()
		}
		if !again || len(w.g.end) > 0 {
			t.Errorf("attached again: %v; ended: %v", again, len(w.g.end) > 0)
		}
	})
}

func (w *world) room() int {
	return (&state.Session{Plugin: w.mid.State.Roster.Plugins["istio"]}).Room()
}
