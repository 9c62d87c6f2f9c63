package placement

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestTurnsKeepNobody: of a connection whose turns have come nothing is kept, though it was the
// last that had some.
func TestTurnsKeepNobody(t *testing.T) {
	type connection [1 << 10]byte
	turns := NewTurns[*connection]()
	vs := view.NewViews(view.NewBodies(view.Types{}), view.NewRefusals())
	vs.Describe(&pb.View{Type: "t", View: 1})
	now := time.Unix(0, 0)
	serve := func(number uint64) (weak.Pointer[connection], weak.Pointer[string]) {
		conn, names := &connection{}, []string{"a", "b"}
		v := vs.Get("t", 1)
		_, fresh := v.Want(false, names)
		turns.Attach(conn, "p")
		turns.Wish(conn, "p", v, Wish{Names: names}, false, fresh)
		for {
			piece, ok := turns.Next(now)
			if !ok {
				break
			}
			turns.Given(piece, number, now)
			if piece.Want == nil {
				turns.Attached(number, now, true)
			} else {
				turns.Wanted(number, now, true)
			}
		}
		v.Drop(false, names)
		turns.Leave(conn)
		return weak.Make(conn), weak.Make(&names[0])
	}
	for number := range uint64(3) {
		conn, names := serve(number)
		runtime.GC()
		if conn.Value() != nil || names.Value() != nil {
			t.Errorf("connection %d is kept: %v, its names: %v", number, conn.Value() != nil, names.Value() != nil)
		}
	}
	runtime.KeepAlive(turns)
}
