package guard

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestFaultsFoundAgain: a fault that was found at another time is no difference, one that says
// something else is.
func TestFaultsFoundAgain(t *testing.T) {
	rows := func(payload string) environment.Tables {
		return environment.Tables{state.Faults: {"a.yaml:1:1": &pb.Row{Key: "a.yaml:1:1", Payload: []byte(payload)}}}
	}
	none := func(string, string) bool { return false }
	was := rows(`{"message": "weight -5 < 0", "since": "2026-01-01T00:00:00Z"}`)
	for payload, want := range map[string]int{
		`{"since": "2026-01-02T00:00:00Z", "message": "weight -5 < 0"}`: 0,
		`{"message": "weight -6 < 0", "since": "2026-01-01T00:00:00Z"}`: 1,
		`no JSON`: 1,
	} {
		if d := Rows(was, rows(payload), none); d.Tables[0].Changed != want {
			t.Errorf("%s: %s", payload, d)
		}
	}
}
