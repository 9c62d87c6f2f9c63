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
	streams       *prometheus.Desc
}

func newRefusals(all func() []report.Refusal) *refusals {
	return &refusals{
		all,
		prometheus.NewDesc("coxswain_refused_resources",
			"Resources, by view, that verified identities refuse now, most of whose proxies do.", []string{"type"},
			nil),
		prometheus.NewDesc("coxswain_quarantined_resources",
			"Resources, by view, parts of which most identities of a namespace refuse, and that its other proxies have as they were before.",
			[]string{"type"}, nil),
		prometheus.NewDesc("coxswain_refusing_streams",
			"Streams that refuse a resource now, each counted once for each; what they say counts for themselves alone.",
			[]string{"type"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (r *refusals) Describe(out chan<- *prometheus.Desc) {
	out <- r.refused
	out <- r.held
	out <- r.streams
}

// Collect implements prometheus.Collector.
func (r *refusals) Collect(out chan<- prometheus.Metric) {
	refused, held, streams := map[string]int{}, map[string]int{}, map[string]int{}
	for _, x := range r.all() {
		name := x.Type[strings.LastIndexByte(x.Type, '/')+1:]
		if x.Votes > 0 {
			refused[name]++
		}
		if x.Held {
			held[name]++
		}
		streams[name] += x.Refusing
	}
	for name, n := range streams {
		out <- prometheus.MustNewConstMetric(r.streams, prometheus.GaugeValue, float64(n), name)
		out <- prometheus.MustNewConstMetric(r.refused, prometheus.GaugeValue, float64(refused[name]), name)
		out <- prometheus.MustNewConstMetric(r.held, prometheus.GaugeValue, float64(held[name]), name)
	}
}
