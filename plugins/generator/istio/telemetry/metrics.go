package telemetry

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"
	api "istio.io/api/telemetry/v1alpha1"
)

// metrics is what a provider keeps of one side.
type metrics struct {
	// off: every metric of the side is switched off.
	off       bool
	interval  *durationpb.Duration
	overrides map[string]*override
}

// override is what becomes of a metric.
type override struct {
	off  bool
	tags map[string]*api.MetricsOverrides_TagOverride
}

// metrics merges what resources say, by provider. Later ones come on top of earlier ones; the
// providers are those of the last one that names any.
func (in *Input) metrics() map[string]*metrics {
	out := map[string]*metrics{}
	parent := in.Mesh.GetDefaultProviders().GetMetrics()
	counting, said := in.metricProviders()
	if !said {
		for _, name := range counting {
			out[name] = &metrics{}
		}
		return out
	}
	for _, r := range in.Resources {
		for _, m := range r.Metrics {
			parent = names(m.Providers, parent)
			for _, name := range parent {
				if !slices.Contains(counting, name) {
					continue
				}
				if out[name] == nil {
					out[name] = &metrics{overrides: map[string]*override{}}
				}
				out[name].apply(m, in.Side.mode())
			}
		}
	}
	return out
}

func (in *Input) metricProviders() (counting []string, said bool) {
	counting = in.Mesh.GetDefaultProviders().GetMetrics()
	for _, r := range in.Resources {
		for _, m := range r.Metrics {
			said = true
			counting = names(m.Providers, counting)
		}
	}
	return counting, said
}

func (s *metrics) apply(m *api.Metrics, side api.WorkloadMode) {
	if m.ReportingInterval != nil {
		s.interval = m.ReportingInterval
	}
	for _, o := range m.Overrides {
		mode := o.GetMatch().GetMode()
		if mode != api.WorkloadMode_CLIENT_AND_SERVER && mode != side {
			continue
		}
		if everything(o.GetMatch()) && o.GetDisabled().GetValue() {
			s.off = true
			continue
		}
		s.off = false
		for _, name := range metricNames(o.GetMatch()) {
			s.override(name, o)
		}
	}
}

func (s *metrics) override(name string, o *api.MetricsOverrides) {
	mine := s.overrides[name]
	if mine == nil {
		mine = &override{tags: map[string]*api.MetricsOverrides_TagOverride{}}
		s.overrides[name] = mine
	}
	if o.Disabled != nil {
		mine.off = o.Disabled.Value
	}
	maps.Copy(mine.tags, o.TagOverrides)
}

// everything reports whether a match is for all metrics.
func everything(m *api.MetricSelector) bool {
	switch x := m.GetMetricMatch().(type) {
	case *api.MetricSelector_CustomMetric:
		return false
	case *api.MetricSelector_Metric:
		return x.Metric == api.MetricSelector_ALL_METRICS
	}
	return true
}

// metricNames are the metrics that a match is for, as resources name them.
func metricNames(m *api.MetricSelector) []string {
	if everything(m) {
		var out []string
		for value, name := range api.MetricSelector_IstioMetric_name {
			if value != int32(api.MetricSelector_ALL_METRICS) {
				out = append(out, name)
			}
		}
		return out
	}
	if x, ok := m.GetMetricMatch().(*api.MetricSelector_CustomMetric); ok {
		return []string{x.CustomMetric}
	}
	return []string{m.GetMetric().String()}
}
