package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// What was published counts beside faults, and not beside any other error.
func TestFaultsKeepTheRest(t *testing.T) {
	fault := &sdk.Fault{What: "row b", Err: errors.New("bad"), Rows: []state.Name{{Table: "in", Key: "b"}}}
	for _, c := range []struct {
		name  string
		err   error
		count bool
		what  []string
	}{
		{"fault", fault, true, []string{"row b"}},
		{"joined", errors.Join(fault, fault), true, []string{"row b", "row b"}},
		{"joined with another error", errors.Join(fault, errors.New("broken")), false, []string{"row b", "derive"}},
		{"wrapped", fmt.Errorf("sorry: %w", fault), false, []string{"row b"}},
		{"another error", errors.New("broken"), false, []string{"derive"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := plugintest.Start(t, sdk.DeriverPlugin{
				Name: "p", Reads: []string{"in"}, Publishes: []string{"out"},
				New: sdk.WithoutConfig(func() (sdk.Deriver, error) {
					return sdk.DeriverFunc(func(_ context.Context, _ *state.Change, out sdk.Publisher) error {
						return errors.Join(out.Update("out", []*sdk.Row{{Key: "a"}}, nil), c.err)
					}), nil
				}),
			}, nil)
			h.Update("in", []*sdk.Row{{Key: "b"}})
			if got := h.Rows("out")["a"] != nil; got != c.count {
				t.Errorf("published: %v", got)
			}
			faults := h.Faults()
			if len(faults) != len(c.what) {
				t.Fatalf("faults %v", faults)
			}
			for i, f := range faults {
				if f.What != c.what[i] {
					t.Errorf("fault %d: %s", i, f.What)
				}
			}
		})
	}
}
