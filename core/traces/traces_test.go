package traces

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/test/kit/otlp"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// tell sends pushes, and returns once all are sent.
func tell(t *testing.T, cfg Config, patience time.Duration, pushes ...report.Push) {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	traces, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pushes {
		traces.Push(p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := traces.Run(ctx, patience); err != nil {
		t.Fatal(err)
	}
}

// pushed is a push that took ten seconds from its first change.
func pushed() report.Push {
	at := time.Unix(1000, 0)
	after := func(seconds int) time.Time { return at.Add(time.Duration(seconds) * time.Second) }
	return report.Push{
		Revision: 7, Kind: "full", Committed: after(2), Waited: 2 * time.Second, Took: 5 * time.Second, Done: after(10), Proxies: 2, Refusals: 1,
		Changed: map[string]int{"services": 1},
		Rows:    []report.PushedRow{{RowName: report.RowName{Table: "services", Key: "a/b"}, What: "changed", Source: "https://u:hush@git.example/x"}},
		Work: []revision.Work{
			{
				Plugin: "istio", Began: after(3), Took: 3 * time.Second,
				Spans: []revision.Span{{Name: "Commit", Began: after(4), Ended: after(5)}, {Name: "elsewhen", Began: at, Ended: after(5)}},
			},
		},
		Answers: []report.Answer{{Node: "sidecar~a", At: after(9)}},
		Refused: []report.PushRefusal{{Node: "sidecar~b", Type: "x", Reason: "no"}},
	}
}

// TestPush: a push is one trace; what plugins did has the time by their own clocks, where it fits.
func TestPush(t *testing.T) {
	to := otlp.Start(t, nil)
	tell(t, Config{Endpoint: to.URL, Ratio: 1}, time.Minute, pushed())
	all := to.Traces()
	if len(all) != 1 {
		t.Fatalf("%d traces", len(all))
	}
	spans := all[0]
	parents := map[string]string{
		"coxswain: push full": "", "coxswain: commit": "coxswain: push full", "coxswain: make": "coxswain: push full", "coxswain: serve": "coxswain: push full",
		"coxswain: wait for istio": "coxswain: make", "coxswain/istio: Commit": "coxswain: wait for istio", "coxswain: answer": "coxswain: serve",
	}
	if len(spans) != len(parents) {
		t.Errorf("%d spans: %v", len(spans), spans)
	}
	root := spans["coxswain: push full"]
	for name, parent := range parents {
		if parent != "" && !spans.Below(name, parent) {
			t.Errorf("%s is not below %s", name, parent)
		}
	}
	seconds := func(name string) string {
		span := spans[name]
		return fmt.Sprint(span.GetStartTimeUnixNano()/1e9, "-", span.GetEndTimeUnixNano()/1e9)
	}
	for name, want := range map[string]string{
		"push full": "1000-1010", "commit": "1000-1002", "make": "1002-1007", "serve": "1007-1010",
		"wait for istio": "1003-1006", "answer": "1007-1009",
	} {
		if got := seconds("coxswain: " + name); got != want {
			t.Errorf("%s took %s, want %s", name, got, want)
		}
	}
	if got := seconds("coxswain/istio: Commit"); got != "1004-1005" {
		t.Errorf("the plugin worked %s", got)
	}
	if text := fmt.Sprint(root); strings.Contains(text, "hush") || !strings.Contains(text, "services/a/b") {
		t.Errorf("what changed: %s", text)
	}
	if root.Status.GetCode() != tracepb.Status_STATUS_CODE_ERROR {
		t.Error("a refusal is no error")
	}
}

// TestID: the id of a push's trace is known beforehand, so that an exemplar can name it; it is
// another one for each push, and in each process.
func TestID(t *testing.T) {
	to := otlp.Start(t, nil)
	traces, err := New(t.Context(), Config{Endpoint: to.URL, Ratio: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	traces.tell(pushed())
	if err := traces.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	id, ok := traces.ID("full", 7)
	all := to.Traces()
	if len(all) != 1 || !ok || fmt.Sprintf("%x", all[0]["coxswain: push full"].GetTraceId()) != id {
		t.Errorf("%s %v: %v", id, ok, all)
	}
	other, err := New(t.Context(), Config{Endpoint: to.URL, Ratio: 0, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{id: true}
	for _, next := range []string{first(traces.ID("endpoints", 7)), first(traces.ID("full", 8)), first(other.ID("full", 7))} {
		if seen[next] {
			t.Errorf("%s again", next)
		}
		seen[next] = true
	}
	if _, ok := other.ID("full", 7); ok {
		t.Error("none is traced, and one has a name")
	}
}

func first(id string, _ bool) string { return id }

// TestRatio: with 0 nothing is sent, and a push of nothing never.
func TestRatio(t *testing.T) {
	to := otlp.Start(t, nil)
	tell(t, Config{Endpoint: to.URL, Ratio: 0}, time.Minute, pushed())
	tell(t, Config{Endpoint: to.URL, Ratio: 1}, time.Minute, report.Push{Revision: 9, Kind: "full"})
	if all := to.Traces(); len(all) > 0 {
		t.Errorf("%v", all)
	}
}

// TestAway: whoever pushes waits for no collector, be it away or hang, and what is left at the end
// is given up in time.
func TestAway(t *testing.T) {
	hang := make(chan struct{})
	for name, endpoint := range map[string]string{"away": "http://" + wait.Address(t), "hanging": otlp.Start(t, hang).URL} {
		t.Run(name, func(t *testing.T) {
			traces, err := New(t.Context(), Config{Endpoint: endpoint, Ratio: 1, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 * mostWaiting { // nobody takes them
				traces.Push(pushed())
			}
			if len(traces.waiting) != mostWaiting {
				t.Errorf("%d wait", len(traces.waiting))
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- traces.Run(ctx, 50*time.Millisecond) }()
			wait.For(t, "all are told", func() error {
				if n := len(traces.waiting); n > 0 {
					return fmt.Errorf("%d wait", n)
				}
				return nil
			})
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	close(hang)
}

// TestServices: there are no more of them than are bound, whatever plugins are called.
func TestServices(t *testing.T) {
	p := pushed()
	p.Work = nil
	for i := range 3 * mostServices {
		at := time.Unix(1003, 0)
		p.Work = append(p.Work,
			revision.Work{Plugin: fmt.Sprint("p", i), Began: at, Took: time.Second, Spans: []revision.Span{{Name: "Commit", Began: at, Ended: at}}})
	}
	traces, err := New(t.Context(), Config{Endpoint: otlp.Start(t, nil).URL, Ratio: 1, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	traces.tell(p)
	if len(traces.of) != mostServices {
		t.Errorf("%d services", len(traces.of))
	}
	if err := traces.close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"http://127.0.0.1:4317": true, "https://collector.example:4317": true, "": false, "127.0.0.1:4317": false,
		"http://": false, "ftp://a:1": false, "http://u:p@a:1": false, "http://a b": false,
	} {
		if err := (Config{Endpoint: endpoint, Ratio: 1}).Check(); (err == nil) != ok {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	var wrong []float64
	for _, ratio := range []float64{-1, 0, .5, 1, 2} {
		if (Config{Endpoint: "http://a:1", Ratio: ratio}).Check() != nil {
			wrong = append(wrong, ratio)
		}
	}
	if !slices.Equal(wrong, []float64{-1, 2}) {
		t.Errorf("wrong ratios: %v", wrong)
	}
}
