package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// sizes are metrics of how many rows there are, and of what runs, read when somebody asks for them.
type sizes struct {
	of      func() map[string]int
	version string
	began   time.Time
	rows    *prometheus.Desc
	info    *prometheus.Desc
	uptime  *prometheus.Desc
}

func newSizes(of func() map[string]int, version string) *sizes {
	return &sizes{
		of: of, version: version, began: time.Now(),
		rows:   prometheus.NewDesc("coxswain_rows", "Rows that are served, by table.", []string{"table"}, nil),
		info:   prometheus.NewDesc("coxswain_info", "1, with the version that runs.", []string{"version"}, nil),
		uptime: prometheus.NewDesc("coxswain_uptime_seconds", "For how long the control plane has run.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *sizes) Describe(out chan<- *prometheus.Desc) {
	out <- s.rows
	out <- s.info
	out <- s.uptime
}

// Collect implements prometheus.Collector.
func (s *sizes) Collect(out chan<- prometheus.Metric) {
	for table, n := range s.of() {
		out <- prometheus.MustNewConstMetric(s.rows, prometheus.GaugeValue, float64(n), table)
	}
	out <- prometheus.MustNewConstMetric(s.info, prometheus.GaugeValue, 1, s.version)
	out <- prometheus.MustNewConstMetric(s.uptime, prometheus.GaugeValue, time.Since(s.began).Seconds())
}

// gathered is what /metrics shows: the core's own, and the same by names that others know.
type gathered struct {
	own  prometheus.Gatherer
	more func(own []*dto.MetricFamily) []*dto.MetricFamily
}

// Gather implements prometheus.Gatherer.
func (g gathered) Gather() ([]*dto.MetricFamily, error) {
	own, err := g.own.Gather()
	if g.more != nil {
		own = append(own, g.more(own)...)
	}
	return own, err
}
