package server

import (
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/prometheus/client_golang/prometheus"
)

// crowds are metrics of namespaces that are full, read when somebody asks for them.
type crowds struct {
	of          func() []environment.Crowded
	rows, bytes *prometheus.Desc
}

func newCrowds(of func() []environment.Crowded) *crowds {
	labels := []string{"namespace", "of"}
	return &crowds{
		of,
		prometheus.NewDesc("coxswain_namespace_refused_rows", "Rows, or newer versions of rows, that are refused "+
			"because their namespace is full (maxNamespaceBytes), of policies or others. Other namespaces are not shown.", labels, nil),
		prometheus.NewDesc("coxswain_namespace_bytes", "What the rows count that a namespace has which is full, of policies or others, in bytes.", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *crowds) Describe(out chan<- *prometheus.Desc) { out <- c.rows; out <- c.bytes }

// Collect implements prometheus.Collector.
func (c *crowds) Collect(out chan<- prometheus.Metric) {
	for _, f := range c.of() {
		of := "others"
		if f.Policies {
			of = "policies"
		}
		out <- prometheus.MustNewConstMetric(c.rows, prometheus.GaugeValue, float64(f.Rows+f.Forgotten), f.Namespace, of)
		out <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(f.Used), f.Namespace, of)
	}
}
