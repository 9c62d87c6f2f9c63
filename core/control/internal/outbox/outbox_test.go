package outbox

import (
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// What was put in before a state is sent before it: a plugin that is done with a state knows which
// views are empty.
func TestCallsBeforeAState(t *testing.T) {
	o := New(nil, nil)
	o.State(&Job{})
	o.Call(&pb.FromCore{Drop: &pb.Drop{}})
	o.State(&Job{})
	if call, job := o.next(); call == nil || job != nil {
		t.Error("a state went before a call that was put in before the next one")
	}
}
