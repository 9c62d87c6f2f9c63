package monitoring

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/otlp"
	testprogram "github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// exemplars are the lines of /metrics that have one.
func exemplars(t *testing.T, w *world) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.Monitoring+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(slices.Collect(func(yield func(string) bool) {
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, " # {") && !yield(line) {
				return
			}
		}
	}), "")
}

// TestTraces: an edit is one trace, with what plugins say of it by themselves, and when the proxy
// answered.
func TestTraces(t *testing.T) {
	to := otlp.Start(t, nil)
	w := start(t, "--traceEndpoint", to.URL)
	w.scrape(t, `coxswain_xds_rejects_total{type="lds"} [1-9]`)
	w.edit(t)
	whole := func(trace otlp.Trace) bool {
		for span, parent := range map[string]string{
			"coxswain: make": "coxswain: push full", "coxswain: serve": "coxswain: push full", "coxswain: answer": "coxswain: serve",
			"coxswain: wait for istio": "coxswain: make", "coxswain/istio: Commit": "coxswain: wait for istio",
			"coxswain: wait for serviceentry": "coxswain: make", "coxswain/serviceentry: Derive": "coxswain: wait for serviceentry",
		} {
			if !trace.Below(span, parent) {
				return false
			}
		}
		return true
	}
	var edit otlp.Trace
	wait.For(t, "a trace of an edit", func() error {
		all := to.Traces()
		if i := slices.IndexFunc(all, whole); i >= 0 {
			edit = all[i]
			return nil
		}
		var names [][]string
		for _, trace := range all {
			names = append(names, slices.Sorted(maps.Keys(trace)))
		}
		return fmt.Errorf("there are %q", names)
	})
	text := exemplars(t, w)
	if id := fmt.Sprintf("trace_id=\"%x\"", edit["coxswain: push full"].GetTraceId()); !strings.Contains(text, id) {
		t.Errorf("no exemplar has %s: %s", id, text)
	}
}

const collecting = `receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry:
    metrics: {level: none}
    logs: {output_paths: [%q]}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
`

// TestCollector: OpenTelemetry's own collector takes what we send.
func TestCollector(t *testing.T) {
	need.All(t)
	programs := testprogram.Built(t, "test/monitoring/collector", "collector", "collector")
	address, dir := wait.Address(t), t.TempDir()
	config, log := filepath.Join(dir, "collector.yaml"), filepath.Join(dir, "log")
	if err := os.WriteFile(config, fmt.Appendf(nil, collecting, address, log), 0o600); err != nil {
		t.Fatal(err)
	}
	testprogram.Start(t, exec.Command(filepath.Join(programs, "collector"), "--config", "file:"+config))
	w := start(t, "--traceEndpoint", "http://"+address)
	w.scrape(t, `coxswain_xds_rejects_total{type="lds"} [1-9]`)
	w.edit(t)
	wait.For(t, "the collector has a trace", func() error {
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		for _, part := range []string{"push full", "wait for istio", "service.name: Str(coxswain/istio)", "Commit", "answer"} {
			if !strings.Contains(string(text), part) {
				return fmt.Errorf("no %q in %d bytes", part, len(text))
			}
		}
		return nil
	})
}
