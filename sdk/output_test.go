package sdk

import (
	"fmt"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/internal/outputs"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func entriesOf(m *pb.FromPlugin) (upserts, removes int) {
	if m.Part != nil {
		return len(m.Part.Upserts), len(m.Part.Removes)
	}
	return len(m.Change.Upserts), len(m.Change.Removes)
}

// TestJoin: what an engine says of one place bit by bit is one message; what it takes away keeps
// its place in the order.
func TestJoin(t *testing.T) {
	const typ = "type.googleapis.com/t"
	o := &output{g: &generation{pluginSession: &pluginSession{hello: &pb.Hello{}}, store: outputs.New()}, revision: &pb.Revision{}}
	put := func(name string) []Resource { return []Resource{{Name: name, Body: []byte(name)}} }
	for _, n := range []string{"a", "b", "c"} {
		o.Change(typ, 1, nil, put(n), nil)
	}
	o.Change(typ, 2, nil, put("a"), nil)
	o.Part(typ, 2, put("a"), nil)
	o.Part(typ, 2, put("b"), nil)
	o.Part(typ, 2, nil, []string{"b"})
	o.Part(typ, 2, put("b"), nil)
	o.Change(typ, 1, []uint64{2}, nil, nil)
	o.Change(typ, 1, nil, put("d"), nil)
	var got []string
	for _, m := range o.g.queue.rest {
		u, r := entriesOf(m)
		got = append(got, fmt.Sprintf("+%d-%d", u, r))
	}
	if want := "[+3-0 +1-0 +2-0 +0-1 +1-0 +0-0 +1-0]"; fmt.Sprint(got) != want {
		t.Errorf("messages have %v, want %s", got, want)
	}
}

// TestEmpty: a resource without a byte is there.
func TestEmpty(t *testing.T) {
	for _, r := range []Resource{{Fields: [][]byte{}}, {Fields: [][]byte{{}}}, {Body: []byte{}}} {
		if r.encoded() == nil {
			t.Errorf("%v, an empty resource, is absent", r)
		}
	}
}
