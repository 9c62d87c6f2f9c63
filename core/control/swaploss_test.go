package control

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// TestLossesOfASwap: the new rows are looked at in a revision of which a proxy sees nothing, and
// the old ones are there again afterwards; what goes is too much from half of it on.
func TestLossesOfASwap(t *testing.T) {
	for name, c := range map[string]struct {
		next []string
		want string
	}{
		"one of several": {[]string{"ns/b.com", "ns/c.com", "ns/d.com", "ns/e.com"}, ""},
		"half":           {[]string{"ns/d.com", "ns/e.com"}, "3 of 6 As would go from 1 proxy"},
		"all":            {[]string{}, "5 of 6 As would go from 1 proxy"},
		"others instead": {[]string{"ns/w.com", "ns/x.com", "ns/y.com", "ns/z.com", "ns/u.com"}, ""},
		"only more":      {[]string{"ns/a.com", "ns/b.com", "ns/c.com", "ns/d.com", "ns/e.com", "ns/f.com"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMirror(t, "ns/a.com", "ns/b.com", "ns/c.com", "ns/d.com", "ns/e.com")
				before := m.proxy.names(typeA)
				trial := m.try(state.Expected{Name: "memory", Kind: pb.KindRegistry})
				next := m.candidate("memory", readyMemory())
				for _, n := range c.next {
					next.rows("services", nil, row(n, "m"))
				}
				next.synced()
				m.each = func() {
					if diff := cmp.Diff(before, m.proxy.names(typeA)); diff != "" {
						t.Error("the proxy sees something of it: ", diff)
					}
				}
				var why []string
				looked := began(func() (err error) { why, err = trial.Losses(t.Context()); return err })
				m.run()
				if err := over(t, looked); err != nil {
					t.Fatal(err)
				}
				m.run()
				m.each()
				if got := strings.Join(why, "; "); !strings.Contains(got, c.want) || c.want == "" && got != "" {
					t.Errorf("would be lost: %q", got)
				}
				if n := len(m.Rows("services")); n != 5 || m.mid.Plugins.Removals.Pending != nil {
					t.Errorf("%d rows are left", n)
				}
			})
		})
	}
}
