package server

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coxswain-mesh/coxswain/core/budget"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// What plugins may report: so many series each, and all together, with so many labels,
// whose values have so many bytes.
const (
	mostSeries  = 200
	mostInAll   = 10000
	mostLabels  = 6
	longestName = 80
	longestText = 64
)

// measuredPrefix begins the names of what plugins report, so that none of them is the core's.
const measuredPrefix = "plugin_"

var nameOfMetric = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// measures are what plugins report of themselves, as they said it last.
type measures struct {
	mu sync.Mutex
	of map[string]map[string]series // by plugin, and by name and labels
	// counter says of a name what it is: the first plugin that reports it does.
	counter map[string]bool
	total   int
}

// series is a value.
type series struct {
	name          string
	labels, words []string
	value         float64
}

func newMeasures() *measures {
	return &measures{of: map[string]map[string]series{}, counter: map[string]bool{}}
}

// Measured takes what a plugin reports, and returns how many samples it does not take: with a name,
// labels or a number that can't be, or too many.
func (m *measures) Measured(plugin string, samples []*pb.Sample) (refused int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range samples {
		x, ok := seriesOf(s)
		if !ok {
			refused++
			continue
		}
		key := x.name + "\x00" + strings.Join(x.labels, "\x00") + "\x00" + strings.Join(x.words, "\x00")
		all := m.of[plugin]
		if all == nil {
			all = map[string]series{}
			m.of[plugin] = all
		}
		_, known := all[key]
		counter, named := m.counter[x.name]
		if !known && (len(all) >= mostSeries || m.total >= mostInAll) || named && (counter != s.Counter || !m.fits(x)) {
			refused++
			continue
		}
		if !known {
			m.total++
		}
		m.counter[x.name], all[key] = s.Counter, x
	}
	return refused
}

// fits reports whether a series has the labels that others of its name have, as those of one metric
// must.
func (m *measures) fits(x series) bool {
	for _, all := range m.of {
		for _, other := range all {
			if other.name == x.name {
				return slices.Equal(other.labels, x.labels)
			}
		}
	}
	return true
}

// seriesOf reads a sample; ok: it may be.
func seriesOf(s *pb.Sample) (x series, ok bool) {
	if s == nil || len(s.Name) > longestName || !nameOfMetric.MatchString(s.Name) || len(s.Labels) > mostLabels || s.Counter && !(s.Value >= 0) {
		return x, false
	}
	x = series{name: s.Name, value: s.Value, labels: slices.Sorted(maps.Keys(s.Labels))}
	for _, l := range x.labels {
		if l == "plugin" || len(l) > longestName || !nameOfMetric.MatchString(l) {
			return x, false
		}
		x.words = append(x.words, budget.Line(s.Labels[l], longestText))
	}
	return x, true
}

// Describe implements prometheus.Collector: what there is depends on plugins.
func (m *measures) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *measures) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, plugin := range slices.Sorted(maps.Keys(m.of)) {
		all := slices.SortedFunc(maps.Values(m.of[plugin]), func(a, b series) int {
			return cmp.Or(cmp.Compare(a.name, b.name), slices.Compare(a.words, b.words))
		})
		for _, x := range all {
			kind := prometheus.GaugeValue
			if m.counter[x.name] {
				kind = prometheus.CounterValue
			}
			d := prometheus.NewDesc(measuredPrefix+x.name, "What plugins report of themselves.", append([]string{"plugin"}, x.labels...), nil)
			if metric, err := prometheus.NewConstMetric(d, kind, x.value, append([]string{plugin}, x.words...)...); err == nil {
				out <- metric
			}
		}
	}
}
