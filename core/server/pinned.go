package server

import (
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/prometheus/client_golang/prometheus"
)

// pinned are metrics of pins, read when somebody asks for them.
type pinned struct {
	all           func() []report.Pin
	pins, proxies *prometheus.Desc
}

func newPinned(all func() []report.Pin) *pinned {
	return &pinned{
		all,
		prometheus.NewDesc("coxswain_pins", "Pins: of proxies that are served what they were at a revision, connected or not.", nil, nil),
		prometheus.NewDesc("coxswain_pinned_proxies", "Connected proxies that are served what they were at a revision.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (p *pinned) Describe(out chan<- *prometheus.Desc) { out <- p.pins; out <- p.proxies }

// Collect implements prometheus.Collector.
func (p *pinned) Collect(out chan<- prometheus.Metric) {
	all, n := p.all(), 0
	for _, x := range all {
		n += len(x.Pinned)
	}
	out <- prometheus.MustNewConstMetric(p.pins, prometheus.GaugeValue, float64(len(all)))
	out <- prometheus.MustNewConstMetric(p.proxies, prometheus.GaugeValue, float64(n))
}
