package server

import (
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/prometheus/client_golang/prometheus"
)

// staged are metrics of how far the stage is.
type staged struct {
	shown       func() report.Rollout
	state, held *prometheus.Desc
}

func newStaged(shown func() report.Rollout) *staged {
	return &staged{
		shown,
		prometheus.NewDesc("coxswain_rollout_state", "1 for how far the stage of a push is: off, idle, staged or withdrawn.", []string{"state"}, nil),
		prometheus.NewDesc("coxswain_rollout_held_proxies", "Connected proxies that are served what was served before the stage.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *staged) Describe(out chan<- *prometheus.Desc) { out <- s.state; out <- s.held }

// Collect implements prometheus.Collector.
func (s *staged) Collect(out chan<- prometheus.Metric) {
	is := s.shown()
	for _, state := range []report.StageState{report.Off, report.Idle, report.Staged, report.Withdrawn} {
		v := 0.0
		if is.State == state {
			v = 1
		}
		out <- prometheus.MustNewConstMetric(s.state, prometheus.GaugeValue, v, string(state))
	}
	out <- prometheus.MustNewConstMetric(s.held, prometheus.GaugeValue, float64(len(is.Held)))
}
