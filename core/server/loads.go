package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coxswain-mesh/coxswain/core/host/load"
)

// loads are metrics of what plugins are asked, read when somebody asks for them.
type loads struct {
	of                          func() map[string]load.Load
	seconds, errors, bytes, cpu *prometheus.Desc
}

func newLoads(of func() map[string]load.Load) *loads {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"plugin"}, labels...), nil)
	}
	return &loads{
		of:      of,
		seconds: d("coxswain_plugin_call_seconds", "Seconds until a plugin answered what it was asked: revisions, proxies, names, patches, callers."),
		errors:  d("coxswain_plugin_call_errors_total", "Answers of a plugin that say that something failed."),
		bytes:   d("coxswain_plugin_bytes_total", "Bytes of messages, in: of the plugin, out: to it.", "direction"),
		cpu:     d("coxswain_plugin_cpu_seconds_total", "Processor time that the plugin's process has used."),
	}
}

func (l *loads) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{l.seconds, l.errors, l.bytes, l.cpu} {
		out <- d
	}
}

func (l *loads) Collect(out chan<- prometheus.Metric) {
	for plugin, m := range l.of() {
		out <- prometheus.MustNewConstHistogram(l.seconds, m.Times.Count(), m.Seconds, m.Times.Cumulative(), plugin)
		out <- prometheus.MustNewConstMetric(l.errors, prometheus.CounterValue, float64(m.Errors), plugin)
		out <- prometheus.MustNewConstMetric(l.bytes, prometheus.CounterValue, float64(m.BytesIn), plugin, "in")
		out <- prometheus.MustNewConstMetric(l.bytes, prometheus.CounterValue, float64(m.BytesOut), plugin, "out")
		out <- prometheus.MustNewConstMetric(l.cpu, prometheus.CounterValue, m.CPUSeconds, plugin)
	}
}
