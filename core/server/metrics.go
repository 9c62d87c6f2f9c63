package server

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/traces"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what control and host report.
type metrics struct {
	commits, partial, faults, broken, unknown, restarts, transitions, asked, swaps, limits *prometheus.CounterVec
	times                                                                                  times
	hidden, retained, retainedBytes                                                        prometheus.Gauge
	woken, views                                                                           prometheus.Counter
	rows, tables                                                                           *prometheus.CounterVec
	*measures
	// trace is the id of a push's trace; nil: pushes aren't traced.
	trace func(kind string, revision uint64) (id string, ok bool)
}

// times are how long revisions took: to be committed, to be served, to be answered by a proxy, and
// by all.
type times struct {
	debounced       prometheus.Histogram
	proxy           prometheus.Histogram
	served, reached *prometheus.HistogramVec
}

// newMetrics registers them; traced is nil where pushes aren't traced.
func newMetrics(r prometheus.Registerer, traced *traces.Traces) *metrics {
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		times:       newTimes(),
		commits:     counters("coxswain_commits_total", "Commits of the Environment, by kind.", "kind"),
		partial:     counters("coxswain_partial_revisions_total", "Revisions served without a plugin that was not done in time.", "plugin"),
		faults:      counters("coxswain_plugin_faults_total", "Pieces of work of a plugin that failed and kept their last good result.", "plugin"),
		broken:      counters("coxswain_plugin_contract_errors_total", "Sessions ended because the plugin broke the contract.", "plugin"),
		unknown:     counters("coxswain_plugin_unknown_messages_total", "Messages of plugins that were skipped.", "plugin", "what"),
		asked:       counters("coxswain_authentications_total", "Questions to authenticators who is calling, by what became of them.", "plugin", "verdict"),
		restarts:    counters("coxswain_plugin_restarts_total", "Starts of a plugin after a failure.", "plugin"),
		transitions: counters("coxswain_plugin_transitions_total", "Steps in plugins' lives, by the state they led to.", "plugin", "state"),
		limits: counters("coxswain_plugin_limits_crossed_total",
			"Times that a plugin crossed one of its limits, by the limit's name in plugins.yaml.", "plugin", "limit"),
		swaps: counters("coxswain_plugin_changes_total", "Changes of plugins while the core ran, by what became of them.", "plugin", "outcome"),
		hidden: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "coxswain_hidden_rows",
			Help: "Rows not served because another plugin has the same key or service (merge), or because their source is away for too long (onLoss).",
		}),
		retained: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "coxswain_retained_views", Help: "Views that nobody is in, kept for those who come back (viewRetention).",
		}),
		retainedBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "coxswain_retained_bytes",
			Help: "Bytes of views and names that only those who left wanted, kept for those who come back, as viewRetentionBytes counts them.",
		}),
		rows: counters("coxswain_changed_rows_total",
			"Rows of sources that commits changed, by table and by what became of them: added, changed or removed.",
			"table", "what"),
		tables:   counters("coxswain_changed_tables_total", "Commits that changed rows of sources, by table.", "table"),
		measures: newMeasures(),
		woken:    counter("coxswain_woken_streams_total", "Streams woken because a view of theirs changed."),
		views:    counter("coxswain_changed_views_total", "Views that changed."),
	}
	if traced != nil {
		m.trace = traced.ID
	}
	r.MustRegister(m.commits, m.partial, m.faults, m.broken, m.unknown, m.asked, m.restarts, m.transitions, m.swaps,
		m.limits, m.times.served, m.times.reached, m.times.debounced, m.hidden, m.retained, m.retainedBytes, m.woken,
		m.views, m.times.proxy, m.rows, m.tables, m.measures)
	return m
}

func newTimes() times {
	seconds := []float64{.001, .005, .01, .05, .1, .5, 1, 3, 5, 10, 20, 30}
	return times{
		debounced: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "coxswain_debounce_seconds", Help: "Seconds from the first change to its commit.",
			Buckets: seconds,
		}),
		proxy: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "coxswain_proxy_seconds",
			Help:    "Seconds from the first change until a proxy had answered all that it got of it, where pushes are followed (followPushes).",
			Buckets: seconds,
		}),
		served: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "coxswain_revision_seconds", Help: "From commit until served, by kind.", Buckets: seconds,
		}, []string{"kind"}),
		reached: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "coxswain_push_seconds",
			Help: "From commit until all streams that it concerned had answered, by kind.", Buckets: seconds,
		}, []string{"kind"}),
	}
}

func (m *metrics) Committed(kind string) { m.commits.WithLabelValues(kind).Inc() }

// Reached counts a push that is over; where that is traced, an exemplar names the trace.
func (m *metrics) Reached(kind string, revision uint64, took time.Duration) {
	of := m.times.reached.WithLabelValues(kind)
	if examples, ok := of.(prometheus.ExemplarObserver); ok && m.trace != nil {
		if id, traced := m.trace(kind, revision); traced {
			examples.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": id})
			return
		}
	}
	of.Observe(took.Seconds())
}

func (m *metrics) Served(kind string, took time.Duration) {
	m.times.served.WithLabelValues(kind).Observe(took.Seconds())
}
func (m *metrics) Partial(plugin string)          { m.partial.WithLabelValues(plugin).Inc() }
func (m *metrics) Fault(plugin string)            { m.faults.WithLabelValues(plugin).Inc() }
func (m *metrics) Broken(plugin string)           { m.broken.WithLabelValues(plugin).Inc() }
func (m *metrics) Hidden(rows int)                { m.hidden.Set(float64(rows)) }
func (m *metrics) Debounced(waited time.Duration) { m.times.debounced.Observe(waited.Seconds()) }
func (m *metrics) Unknown(plugin string, what string, n int) {
	m.unknown.WithLabelValues(plugin, what).Add(float64(n))
}

func (m *metrics) Authenticated(plugin, verdict string) {
	m.asked.WithLabelValues(plugin, verdict).Inc()
}

func (m *metrics) Woken(streams, views int) {
	m.woken.Add(float64(streams))
	m.views.Add(float64(views))
}

func (m *metrics) Retained(views int, bytes int64) {
	m.retained.Set(float64(views))
	m.retainedBytes.Set(float64(bytes))
}

func (m *metrics) Changed(table string, added, changed, removed int) {
	m.tables.WithLabelValues(table).Inc()
	for what, n := range map[string]int{"added": added, "changed": changed, "removed": removed} {
		if n > 0 {
			m.rows.WithLabelValues(table, what).Add(float64(n))
		}
	}
}

func (m *metrics) Answered(took time.Duration) { m.times.proxy.Observe(took.Seconds()) }

func (m *metrics) Crossed(plugin, limit string) { m.limits.WithLabelValues(plugin, limit).Inc() }

func (m *metrics) swapped(plugin, outcome string) { m.swaps.WithLabelValues(plugin, outcome).Inc() }

func (m *metrics) transition(t host.Transition) {
	m.transitions.WithLabelValues(t.Plugin, string(t.To)).Inc()
	if limit := session.CrossedLimit(t.Err); manifest.IsLimit(limit) {
		m.Crossed(t.Plugin, limit)
	}
	if t.Restart {
		m.restarts.WithLabelValues(t.Plugin).Inc()
	}
}

// heldRows are gauges of what is held when they are read.
type heldRows struct {
	held        func() []control.Held
	rows, holds *prometheus.Desc
}

func newHeldRows(held func() []control.Held) *heldRows {
	return &heldRows{
		held, prometheus.NewDesc("coxswain_held_rows", "Changes of rows that are held because much would go at once.", []string{"plugin"}, nil),
		prometheus.NewDesc("coxswain_holds", "Plugins of which something is held because much would go at once.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (h *heldRows) Describe(out chan<- *prometheus.Desc) { out <- h.rows; out <- h.holds }

// Collect implements prometheus.Collector.
func (h *heldRows) Collect(out chan<- prometheus.Metric) {
	all := h.held()
	out <- prometheus.MustNewConstMetric(h.holds, prometheus.GaugeValue, float64(len(all)))
	for _, held := range all {
		out <- prometheus.MustNewConstMetric(h.rows, prometheus.GaugeValue, float64(held.Rows), held.Plugin)
	}
}
