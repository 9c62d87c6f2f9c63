package server

import (
	"strings"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/prometheus/client_golang/prometheus"
)

// refusals are metrics of resources that proxies refuse, read when somebody asks for them.
type refusals struct {
	all           func() []report.Refusal
	refused, held *prometheus.Desc
}

func newRefusals(all func() []report.Refusal) *refusals {
	return &refusals{
		all,
		prometheus.NewDesc("coxswain_refused_resources", "Resources, by view, that some proxy refuses now.", []string{"type"}, nil),
		prometheus.NewDesc("coxswain_quarantined_resources", "Resources, by view, that most proxies refuse, and that all proxies of the view have as they were before.", []string{"type"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (r *refusals) Describe(out chan<- *prometheus.Desc) { out <- r.refused; out <- r.held }

// Collect implements prometheus.Collector.
func (r *refusals) Collect(out chan<- prometheus.Metric) {
	refused, held := map[string]int{}, map[string]int{}
	for _, x := range r.all() {
		name := x.Type[strings.LastIndexByte(x.Type, '/')+1:]
		if refused[name]++; x.Held {
			held[name]++
		}
	}
	for name, n := range refused {
		out <- prometheus.MustNewConstMetric(r.refused, prometheus.GaugeValue, float64(n), name)
		out <- prometheus.MustNewConstMetric(r.held, prometheus.GaugeValue, float64(held[name]), name)
	}
}
