package monitoring

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/otlp"
	"github.com/coxswain-mesh/coxswain/test/wait"
)

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
	wait.For(t, "a trace of an edit", func() error {
		all := to.Traces()
		if slices.ContainsFunc(all, whole) {
			return nil
		}
		var names [][]string
		for _, trace := range all {
			names = append(names, slices.Sorted(maps.Keys(trace)))
		}
		return fmt.Errorf("there are %q", names)
	})
}
