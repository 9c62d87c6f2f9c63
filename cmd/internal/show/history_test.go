package show

import (
	"bytes"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// TestHistoryTable: a line for each revision, with its cause.

func TestHistoryTable(t *testing.T) {
	row := func(key string) report.PushedRow {
		return report.PushedRow{RowName: admin.RowName{Table: "networking.istio.io/VirtualService", Key: key}, What: "changed"}
	}
	h := admin.History{MostRevisions: 100, Bytes: 5e5, MostBytes: 32e6, Revisions: []admin.Kept{
		{Push: admin.Push{Revision: 1, Committed: time.Now()}, Unchanged: true},
		{Push: admin.Push{
			Revision: 2, Committed: time.Now(), Rows: []report.PushedRow{row("a/x"), row("a/y"), row("a/z")},
			Views: map[string]int{"type.googleapis.com/envoy.config.route.v3.RouteConfiguration": 3}, Proxies: 9,
			Waiting: 2, Refusals: 1,
		}, Kept: true},
		{Push: admin.Push{Revision: 3, Committed: time.Now(), Held: true}},
	}}
	for _, c := range []struct {
		wide bool
		want []string
	}{
		{false, []string{
			"no  nothing  0  0  -",
			"yes  RouteConfiguration 3  7 of 9  1  VirtualService a/x changed, VirtualService a/y changed, and 1 others (-o wide)",
			"held", "kept: 1 revision of 100 at most, 0.5 MB of 32.0 MB, in memory alone",
		}},
		{true, []string{"VirtualService a/z changed"}},
	} {
		var out bytes.Buffer
		w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
		History(w, h, c.wide)
		_ = w.Flush()
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range c.want {
			if !strings.Contains(text, strings.Join(strings.Fields(want), " ")) {
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	}
}

// TestPinTable: of each proxy it is said which types are as they were, and which are live.

func TestPinTable(t *testing.T) {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	Pins(w, []report.Pin{{Revision: 41, Since: time.Now(), Note: "it ends with this control plane", Pinned: []report.PinnedProxy{
		{Node: "router~1.2.3.4~gw.shop~x", Types: map[string]string{"a.Listener": "own", "a.Cluster": "own", "a.Route": "view", "a.Secret": "live"}},
	}}}, false)
	_ = w.Flush()
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"41 all 1 live 0s", "revision 41: it ends with this control plane", "gw.shop 41 Cluster, Listener Route Secret"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestRolloutTable: how far a stage is, and what it waits for.

func TestRolloutTable(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		is   report.Stage
		want []string
	}{
		"off":  {report.Stage{State: report.Off}, []string{"pushes have no stages", "rolloutFirst"}},
		"idle": {report.Stage{State: report.Idle}, []string{"no stage is under way"}},
		"staged": {
			report.Stage{
				State: report.Staged, Base: 41, Latest: 42, Since: now, Began: now, First: 3, Behind: 2, Ends: now,
				Why: "2 have not", Metric: &report.Reading{Value: "0.5", At: now},
			},
			[]string{
				"the first proxies try revision 42", "all others are served revision 41",
				"3 are connected, 2 of them have not acknowledged it", "metric 0.5", "because 2 have not",
				"reaches all at " + now.Format(time.DateTime),
			},
		},
		"withdrawn": {
			report.Stage{State: report.Withdrawn, Base: 41, Latest: 42, Why: "it is late", Metric: &report.Reading{Error: "it is away", At: now}},
			[]string{"revision 42 is served to nobody", "all proxies are served revision 41", "metric it is away", "because it is late"},
		},
	} {
		var out bytes.Buffer
		w := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
		Rollout(w, c.is)
		Staged(w, []admin.PinnedProxy{{Node: "web", Types: map[string]string{"x.Listener": "own"}}})
		_ = w.Flush()
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range append(c.want, "web Listener - -") {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, out.String())
			}
		}
	}
}

// TestHeldBack: that some proxies don't have what is live.

func TestHeldBack(t *testing.T) {
	var out bytes.Buffer
	HeldBack(&out, []admin.Pin{{Revision: 7}}, admin.Rollout{Stage: report.Stage{State: report.Idle}})
	if out.Len() > 0 {
		t.Error(out.String())
	}
	two := []admin.PinnedProxy{{Node: "a"}, {Node: "b"}}
	HeldBack(&out, []admin.Pin{{Revision: 7, Pinned: two[:1]}}, admin.Rollout{Stage: report.Stage{State: report.Withdrawn, Base: 8}, Held: two})
	for _, want := range []string{"1 proxy is pinned to revision 7", "2 proxies are not served what has changed since revision 8: a push is withdrawn"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, out.String())
		}
	}
}
