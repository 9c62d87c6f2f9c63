package server

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/prometheus/client_golang/prometheus"
)

// ages are metrics of how old the last words of plugins are that hang or are away, read when
// somebody asks for them.
type ages struct {
	of    func() map[string]control.Stale
	stale *prometheus.Desc
}

func newAges(of func() map[string]control.Stale) *ages {
	return &ages{of, prometheus.NewDesc("coxswain_plugin_stale_seconds",
		"For how long a plugin has been away, hung or late; what it said last is served. 0 where it is not.", []string{"plugin"}, nil)}
}

func (a *ages) Describe(out chan<- *prometheus.Desc) { out <- a.stale }

func (a *ages) Collect(out chan<- prometheus.Metric) {
	for plugin, st := range a.of() {
		seconds := 0.0
		if !st.Since.IsZero() {
			seconds = time.Since(st.Since).Seconds()
		}
		out <- prometheus.MustNewConstMetric(a.stale, prometheus.GaugeValue, seconds, plugin)
	}
}
