package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	api "istio.io/api/telemetry/v1alpha1"
)

// logging is how a provider's log is written.
type logging struct {
	off    bool
	filter *api.AccessLogging_Filter
}

// addLogs adds the logs of the providers that Telemetry or the mesh's defaults ask for; if there
// are none, those of the mesh's own settings.
func (in *Input) addLogs(out *Reports) {
	chosen := in.logging()
	any := false
	for _, name := range in.byProvider(chosen) {
		l := in.log(name)
		if l == nil {
			continue
		}
		any = true
		if how := chosen[name]; !how.off {
			one := filtered(l, how.filter)
			out.Requests, out.Connections = append(out.Requests, one), append(out.Connections, one)
			out.Refused = append(out.Refused, filtered(l, how.filter, refused()))
		}
	}
	if !any {
		in.addMeshLogs(out)
	}
	if in.Mesh.DisableEnvoyListenerLog {
		out.Refused = nil
	}
}

// byProvider are the names in the order of the providers that they mean.
func (in *Input) byProvider(chosen map[string]logging) []string {
	return slices.SortedFunc(maps.Keys(chosen), func(a, b string) int {
		return cmp.Or(strings.Compare(in.provider(a).GetName(), in.provider(b).GetName()), strings.Compare(a, b))
	})
}

// logging merges what resources say: which providers count, and how each writes.
func (in *Input) logging() map[string]logging {
	out := map[string]logging{}
	counting, filters, said := in.logProviders()
	if !said {
		for _, name := range counting {
			out[name] = logging{}
		}
		return out
	}
	parent := in.Mesh.GetDefaultProviders().GetAccessLogging()
	for _, r := range in.Resources {
		for _, l := range r.AccessLogging {
			parent = names(l.Providers, parent)
			if !in.meant(l) {
				continue
			}
			for _, name := range parent {
				if slices.Contains(counting, name) {
					out[name] = logging{off: l.GetDisabled().GetValue(), filter: filters[name]}
				}
			}
		}
	}
	return out
}

// logProviders are the providers that the most specific resource names, and the last filter of
// each; said is false if no resource says anything.
func (in *Input) logProviders() (counting []string, filters map[string]*api.AccessLogging_Filter, said bool) {
	counting, filters = in.Mesh.GetDefaultProviders().GetAccessLogging(), map[string]*api.AccessLogging_Filter{}
	for _, r := range in.Resources {
		var mine []string
		for _, l := range r.AccessLogging {
			said = true
			if !in.meant(l) {
				continue
			}
			for _, name := range names(l.Providers, nil) {
				mine = append(mine, name)
				filters[name] = l.Filter
			}
		}
		if len(mine) > 0 {
			counting = mine
		}
	}
	return counting, filters, said
}

// meant reports whether a setting is for this side.
func (in *Input) meant(l *api.AccessLogging) bool {
	m := l.GetMatch().GetMode()
	return m == api.WorkloadMode_CLIENT_AND_SERVER || m == in.Side.mode()
}

// filtered is a log of what passes filters.
func filtered(l *accesslogv3.AccessLog, expression *api.AccessLogging_Filter, more ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLog {
	if expression != nil {
		more = append(more, matching(expression.Expression))
	}
	out := &accesslogv3.AccessLog{Name: l.Name, ConfigType: l.ConfigType}
	switch len(more) {
	case 0:
	case 1:
		out.Filter = more[0]
	default:
		out.Filter = &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_AndFilter{
			AndFilter: &accesslogv3.AndFilter{Filters: more},
		}}
	}
	return out
}
