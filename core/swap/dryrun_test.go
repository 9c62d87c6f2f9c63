package swap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestDryRuns: who asks for a dry run, for what, and how far it is can be seen while it hangs, and
// what came of it once it is over; another one beside it waits, and what is no dry run is not
// among them.
func TestDryRuns(t *testing.T) {
	s := liveOf(t, `plugins: [{name: a, kind: registry, builtin: registry/shop, config: {host: a.example, doors: 1, opened: true}}]`, nil)
	by := audit.With(t.Context(), audit.Who{By: audit.ByPage})
	hung, stop := context.WithCancel(by)
	ended := make(chan error, 2)
	_, still := s.Planning()
	go func() {
		_, err := s.Swap(hung, "a", Request{Config: "{host: never, doors: 1, opened: true, password: hush-hush}"}, Options{DryRun: true})
		ended <- err
	}()
	making := func(n int, wants func(all []report.Plan) bool) {
		t.Helper()
		wait.For(t, "dry runs are seen in the making", func() error {
			if all := s.Plans().Making; len(all) != n || !wants(all) {
				return fmt.Errorf("%+v", all)
			}
			return nil
		})
	}
	making(1, func(all []report.Plan) bool {
		p := all[0]
		return p.State == report.PlanMaking && p.By == "page" && p.Command == "coxswain plugins swap a --config … --dry-run" && !p.Began.IsZero() &&
			p.Of == 1 && len(p.Steps) == 1 && p.Steps[0].What == doSwap && p.Steps[0].State == string(Syncing)
	})
	if n, moves := s.Planning(); n != 1 || moves == still {
		t.Errorf("%d are in the making, after %d moves", n, moves)
	}
	go func() {
		_, err := s.Swap(by, "a", Request{Config: "{host: b.example, doors: 1, opened: true}"}, Options{DryRun: true})
		ended <- err
	}()
	making(2, func(all []report.Plan) bool { return all[1].State == report.PlanWaiting && len(all[1].Steps) == 0 })
	stop()
	if err := errors.Join(<-ended, <-ended); !errors.Is(err, context.Canceled) {
		t.Errorf("they ended with %v", err)
	}
	if c, err := s.Restart(by, "a", Options{}); err != nil || c.State != Switched {
		t.Errorf("%+v, %v", c, err)
	}
	all := s.Plans()
	if len(all.Making) != 0 || len(all.Ended) != 2 {
		t.Fatalf("%+v", all)
	}
	failed, done := all.Ended[1], all.Ended[0]
	if failed.ID > done.ID {
		failed, done = done, failed
	}
	if failed.State != report.PlanFailed || !strings.Contains(failed.Error, "did not wait") || failed.Ended.IsZero() {
		t.Errorf("%+v", failed)
	}
	if done.State != report.PlanDone || len(done.Steps) != 1 || done.Steps[0].State != string(Compared) || done.Steps[0].Summary != "+1 service −1" ||
		len(done.Steps[0].Difference.Tables) != 1 || done.Error != "" {
		t.Errorf("%+v", done)
	}
	if text, err := json.Marshal(all); err != nil || strings.Contains(string(text), "hush-hush") {
		t.Errorf("what configs say is shown: %s, %v", text, err)
	}
	if got := string(s.Entries()[0].Config); !strings.Contains(got, "a.example") {
		t.Errorf("%s runs", got)
	}

	if _, err := s.Plan(by, []byte("plugins: [{name: a, kind: nonsense}]")); err == nil {
		t.Error("nonsense is a plan")
	}
	if _, err := s.Plan(by, []byte("plugins: [{name: b, kind: registry, builtin: registry/a}, {name: a, kind: registry, builtin: registry/a}]")); err != nil {
		t.Error(err)
	}
	all = s.Plans()
	if p := all.Ended[1]; p.State != report.PlanFailed || p.Error == "" || len(p.Steps) != 0 {
		t.Errorf("%+v", p)
	}
	if p := all.Ended[0]; p.State != report.PlanDone || p.Of != 2 || len(p.Steps) != 2 || p.Steps[0].What+" "+p.Steps[1].What != "add swap" {
		t.Errorf("%+v", p)
	}
}

// TestEnableIsNoDryRun: there is no dry run of enable, which would start the plugin unaudited.
func TestEnableIsNoDryRun(t *testing.T) {
	s := live(t, nil)
	if _, err := s.Disable(t.Context(), "a", Options{Force: true, Ephemeral: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enable(t.Context(), "a", Options{DryRun: true, Ephemeral: true}); err == nil || !strings.Contains(err.Error(), "no dry run of enable") {
		t.Error(err)
	}
	if e, _ := s.running.now().Get("a"); e.Runs() {
		t.Error("it runs")
	}
}

// huge is a change of which the difference is as large as one can be.
func huge(fields, lines int) *Change {
	long := strings.Repeat("xyz", 1000)
	d := &guard.Difference{Types: []guard.TypeDifference{{Type: "example.Type", Proxies: 3}}}
	for range fields {
		d.Types[0].Fields = append(d.Types[0].Fields, long)
	}
	c := &Change{Plugin: "a", What: doSwap, State: Compared, Summary: "+1 Type", Difference: d}
	for range lines {
		c.Reasons = append(c.Reasons, long)
	}
	return c
}

// TestDryRunsAreBounded: however many there are, and however large, few are kept, in few bytes:
// of a large one what says least goes first.
func TestDryRunsAreBounded(t *testing.T) {
	ds := &dryRuns{}
	end := func(steps int, c *Change, err error) report.Plan {
		d := ds.begin(t.Context(), strings.Repeat("long ", 1000))
		d.proceeds(steps)
		for range steps {
			d.takes(func() *Change { return c })
		}
		d.end(err)
		return ds.shown().Ended[0]
	}
	if p := end(1, huge(1, 1), nil); p.Cut || len(p.Steps[0].Difference.Types[0].Fields) != 1 || len(p.Command) > 2*longestLine {
		t.Errorf("%.200v", p)
	}
	if p := end(1, huge(1000, 1), nil); !p.Cut || p.Steps[0].Difference.Types[0].Proxies != 3 || len(p.Steps[0].Difference.Types[0].Fields) != 0 {
		t.Errorf("%.200v", p)
	}
	if p := end(1, huge(1, 1000), nil); !p.Cut || p.Steps[0].Summary != "+1 Type" || len(p.Steps[0].Reasons) != linesOfPlan {
		t.Errorf("%.200v", p)
	}
	if p := end(3000, huge(1, 1000), errors.New(strings.Repeat("no ", 1<<20))); len(p.Steps) == 0 || len(p.Steps)+p.MoreSteps != 3000 || len(p.Error) > 1<<14 {
		t.Errorf("%d steps, %d more", len(p.Steps), p.MoreSteps)
	}
	for range 3 * plansKept {
		end(100, huge(1, 1000), nil)
		ds.begin(t.Context(), "x").proceeds(1)
	}
	all := ds.shown()
	if len(all.Making) != plansMaking || all.MoreMaking != 2*plansKept {
		t.Errorf("%d are shown in the making, and %d more", len(all.Making), all.MoreMaking)
	}
	text, err := json.Marshal(all.Ended)
	if err != nil || len(text) > plansBytes+plansBytes/10 || len(all.Ended) == 0 || len(all.Ended) > plansKept {
		t.Errorf("%d are kept, in %d bytes: %v", len(all.Ended), len(text), err)
	}
	for range plansKept {
		end(1, &Change{Plugin: "b"}, nil)
	}
	if all := ds.shown().Ended; len(all) != plansKept || all[plansKept-1].Steps[0].Plugin != "b" {
		t.Errorf("%d are kept", len(all))
	}
}
