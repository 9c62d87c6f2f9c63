package server

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/prometheus/client_golang/prometheus"
)

// hiding are metrics of rows that are not served and of sources that are away, read when somebody
// asks for them.
type hiding struct {
	of           func() map[string]control.Hiding
	hidden, away *prometheus.Desc
}

func newHiding(of func() map[string]control.Hiding) *hiding {
	return &hiding{
		of,
		prometheus.NewDesc("coxswain_plugin_hidden_rows",
			"Rows of a plugin that are not served: another plugin's are (merge), or its source is away for too long (onLoss).",
			[]string{"plugin"}, nil),
		prometheus.NewDesc("coxswain_source_away_seconds",
			"For how long the source of a plugin's rows has been away. 0 where it is not.", []string{"plugin"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (h *hiding) Describe(out chan<- *prometheus.Desc) { out <- h.hidden; out <- h.away }

// Collect implements prometheus.Collector.
func (h *hiding) Collect(out chan<- prometheus.Metric) {
	for plugin, of := range h.of() {
		seconds := 0.0
		if !of.Away.IsZero() {
			seconds = time.Since(of.Away).Seconds()
		}
		out <- prometheus.MustNewConstMetric(h.hidden, prometheus.GaugeValue, float64(of.Hidden), plugin)
		out <- prometheus.MustNewConstMetric(h.away, prometheus.GaugeValue, seconds, plugin)
	}
}
