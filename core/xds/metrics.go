package xds

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the server's.
type metrics struct {
	connected                   *prometheus.GaugeVec   // by the proxy's version
	pushes, sendErrors, expired *prometheus.CounterVec // by type
	refused, ended              *prometheus.CounterVec // by code
	rejects                     *prometheus.CounterVec // by type
	limits                      *prometheus.CounterVec // by the limit's name
	timeouts, unknown           prometheus.Counter
	sendTime, queueTime         prometheus.Histogram
	configSize, pushTime        *prometheus.HistogramVec // by type
	turns                       turns
	versions                    map[string]int // streams by the version that connected has
	overload                    prometheus.Gauge
}

// turns count what streams had their turns for.
type turns struct{ pushes, answers prometheus.Counter }

// Buckets, in seconds: of what is sent, and of what waits.
var sendBuckets, waitBuckets = []float64{.01, .1, 1, 3, 5, 10, 20, 30}, []float64{.1, .5, 1, 3, 5, 10, 20, 30}

// newMetrics returns the metrics, registered if there is somewhere to.
func newMetrics(r prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	m := &metrics{
		connected: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "coxswain_xds_streams", Help: "Connected xDS streams by the proxies' version."},
			[]string{"version"}),
		pushes:     counters("coxswain_xds_responses_total", "Responses handed to gRPC, by type.", "type"),
		sendErrors: counters("coxswain_xds_send_errors_total", "Responses that could not be sent, by type.", "type"),
		expired:    counters("coxswain_xds_stale_requests_total", "Requests that answer a response which isn't the last, by type.", "type"),
		refused:    counters("coxswain_xds_streams_refused", "Streams refused when they began, by gRPC code.", "code"),
		ended:      counters("coxswain_xds_streams_ended_total", "Streams that ended, by gRPC code: OK and Canceled are the client's doing.", "code"),
		rejects:    counters("coxswain_xds_rejects_total", "Responses that proxies refused, by type.", "type"),
		overload: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "coxswain_overload_state",
			Help: "For lack of memory: 1 refuses new streams, 2 ends the heaviest too.",
		}),
		versions:  map[string]int{},
		timeouts:  counter("coxswain_xds_write_timeouts_total", "Streams ended because the client took nothing."),
		unknown:   counter("coxswain_xds_unknown_types", "Requests for types that no generator offers to the proxy."),
		limits:    counters("coxswain_xds_limited_total", "What clients were refused, or had to wait for, by the setting that limits it.", "limit"),
		sendTime:  histogram("coxswain_xds_send_seconds", "Seconds until gRPC has written a response to the client's connection.", sendBuckets),
		queueTime: histogram("coxswain_xds_queue_seconds", "Seconds that a stream waited for its turn to be pushed to.", waitBuckets),
		configSize: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "coxswain_xds_response_bytes", Help: "Bytes of the resources of a response, by type.",
			Buckets: []float64{1, 1e4, 1e6, 4e6, 1e7, 4e7},
		}, []string{"type"}),
		pushTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "coxswain_xds_response_seconds",
			Help:    "Seconds from when a response could be composed until gRPC had written it, by type.",
			Buckets: sendBuckets,
		}, []string{"type"}),
	}
	had := counters("coxswain_xds_turns_total", "Turns of streams, by what for: a push, or the answer to a request.", "for")
	m.turns = turns{had.WithLabelValues("push"), had.WithLabelValues("request")}
	for _, t := range []string{ClusterType, typeEndpoints, typeListeners, typeRoutes} {
		m.rejects.WithLabelValues(short(t)) // so that its first is seen to be one more
	}
	if r == nil {
		return m, nil
	}
	var err error
	for _, c := range []prometheus.Collector{
		m.connected, m.pushes, m.sendErrors, m.expired, m.refused, m.ended, m.rejects, m.timeouts, m.unknown, m.limits, m.overload,
		m.sendTime, m.queueTime, m.configSize, m.pushTime, had,
	} {
		err = errors.Join(err, r.Register(c))
	}
	return m, err
}

// maxVersions is how many versions of proxies are told apart.
const maxVersions = 100

// connect counts a stream by its proxy's version, and returns what it is counted as. Clients say
// what they like: a version that none has any more is forgotten, and of those that they have only
// so many are told apart. The server's lock is held.
func (m *metrics) connect(version string) string {
	if m.versions[version] == 0 && len(m.versions) >= maxVersions {
		version = "other"
	}
	m.versions[version]++
	m.connected.WithLabelValues(version).Inc()
	return version
}

// disconnect takes a stream out. The server's lock is held.
func (m *metrics) disconnect(version string) {
	m.connected.WithLabelValues(version).Dec()
	if m.versions[version]--; m.versions[version] == 0 {
		delete(m.versions, version)
		m.connected.DeleteLabelValues(version)
	}
}

// turn counts a turn, which was waited for.
func (m *metrics) turn(what uint32, waited time.Duration) {
	if what&(pushes|dependent) != 0 {
		m.turns.pushes.Inc()
		m.queueTime.Observe(waited.Seconds())
	}
	if what&answers != 0 {
		m.turns.answers.Inc()
	}
}

func (m *metrics) pushed(typeURL string, size int) {
	t := short(typeURL)
	m.pushes.WithLabelValues(t).Inc()
	m.configSize.WithLabelValues(t).Observe(float64(size))
}

// short returns a type's name in metrics: that of its service, or the URL. Only types that are
// offered come here, so there are few.
func short(typeURL string) string {
	switch typeURL {
	case ClusterType:
		return "cds"
	case typeEndpoints:
		return "eds"
	case typeListeners:
		return "lds"
	case typeRoutes:
		return "rds"
	case typeSecrets:
		return "sds"
	case typeExtensions:
		return "ecds"
	}
	return typeURL
}
