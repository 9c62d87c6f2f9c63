package server

import "github.com/prometheus/client_golang/prometheus"

// kept are metrics of the history's file, read when somebody asks for them.
type kept struct {
	faults      func() (now bool, lost int)
	fault, lost *prometheus.Desc
}

func newKept(faults func() (now bool, lost int)) *kept {
	return &kept{
		faults,
		prometheus.NewDesc("coxswain_history_fault",
			"Whether the history's file lacks something (1), so that pins may not outlive a restart: it can't be written, or the disk does not answer.",
			nil, nil),
		prometheus.NewDesc("coxswain_history_files_lost_total",
			"Files of the history that were cut, removed, replaced or damaged while they were in use.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (k *kept) Describe(out chan<- *prometheus.Desc) { out <- k.fault; out <- k.lost }

// Collect implements prometheus.Collector.
func (k *kept) Collect(out chan<- prometheus.Metric) {
	now, lost := k.faults()
	fault := 0.0
	if now {
		fault = 1
	}
	out <- prometheus.MustNewConstMetric(k.fault, prometheus.GaugeValue, fault)
	out <- prometheus.MustNewConstMetric(k.lost, prometheus.CounterValue, float64(lost))
}
