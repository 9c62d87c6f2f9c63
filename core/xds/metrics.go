package xds

import (
	"errors"

	"github.com/coxswain-mesh/coxswain/core/budget"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics have the names that istiod gives them, so that dashboards go on working.
type metrics struct {
	connected                   *prometheus.GaugeVec   // by the proxy's version
	pushes, sendErrors, expired *prometheus.CounterVec // by type
	refused, ended              *prometheus.CounterVec // by code
	totalRejects                *prometheus.CounterVec // by type
	typeRejects                 map[string]prometheus.Gauge
	limits                      *prometheus.CounterVec // by the limit's name
	timeouts, unknown           prometheus.Counter
	sendTime                    prometheus.Histogram
	configSize                  *prometheus.HistogramVec // by type
	versions                    map[string]int           // streams by the version that connected has
	overload                    prometheus.Gauge
}

// newMetrics returns the metrics, registered if there is somewhere to.
func newMetrics(r prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	m := &metrics{
		connected:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pilot_xds", Help: "Connected xDS streams by the proxies' version."}, []string{"version"}),
		pushes:       counters("pilot_xds_pushes", "Responses handed to gRPC, by type.", "type"),
		sendErrors:   counters("pilot_xds_send_errors", "Responses that could not be sent, by type.", "type"),
		expired:      counters("pilot_xds_expired_nonce", "Requests that answer a response which isn't the last, by type.", "type"),
		refused:      counters("coxswain_xds_streams_refused", "Streams refused when they began, by gRPC code.", "code"),
		ended:        counters("coxswain_xds_streams_ended_total", "Streams that ended, by gRPC code: OK and Canceled are the client's doing.", "code"),
		totalRejects: counters("pilot_total_xds_rejects", "Responses that proxies refused, by type.", "type"),
		typeRejects:  map[string]prometheus.Gauge{},
		overload:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "coxswain_overload_state", Help: "For lack of memory: 1 refuses new streams, 2 ends the heaviest too."}),
		versions:     map[string]int{},
		timeouts:     counter("pilot_xds_write_timeout", "Streams ended because the client took nothing."),
		unknown:      counter("coxswain_xds_unknown_types", "Requests for types that no generator offers to the proxy."),
		limits:       counters("coxswain_xds_limited_total", "What clients were refused, or had to wait for, by the setting that limits it.", "limit"),
		sendTime:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: "pilot_xds_send_time", Help: "Seconds until gRPC has written a response to the client's connection.", Buckets: []float64{.01, .1, 1, 3, 5, 10, 20, 30}}),
		configSize:   prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "pilot_xds_config_size_bytes", Help: "Bytes of the resources of a response, by type.", Buckets: []float64{1, 1e4, 1e6, 4e6, 1e7, 4e7}}, []string{"type"}),
	}
	all := []prometheus.Collector{
		m.connected, m.pushes, m.sendErrors, m.expired, m.refused, m.ended, m.totalRejects, m.timeouts, m.unknown, m.limits, m.overload, m.sendTime, m.configSize,
	}
	for _, t := range []string{"cds", "eds", "lds", "rds"} {
		m.typeRejects[t] = prometheus.NewGauge(prometheus.GaugeOpts{Name: "pilot_xds_" + t + "_reject", Help: "Refused responses of " + t + "."})
		all = append(all, m.typeRejects[t])
	}
	if r == nil {
		return m, nil
	}
	var err error
	for _, c := range all {
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

func (m *metrics) rejects(typeURL string) {
	t := short(typeURL)
	m.totalRejects.WithLabelValues(t).Inc()
	if g := m.typeRejects[t]; g != nil {
		g.Inc()
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
	case "type.googleapis.com/istio.networking.nds.v1.NameTable":
		return "nds"
	}
	return typeURL
}

// version returns what a proxy says it is, as a metric's label.
func version(n *core.Node) string {
	v := n.GetMetadata().GetFields()["ISTIO_VERSION"].GetStringValue()
	if v == "" {
		v = "unknown"
	}
	return budget.Line(v, 64)
}
