package simulator

import (
	"cmp"
	"slices"

	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
)

// fault injects what is certain, and notes what is left to chance.
//
// https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/fault_filter
func (w *walk) fault(name string, f *faultv3.HTTPFault) {
	var route faultv3.HTTPFault
	if w.perRoute(name, &route) {
		f = &route
	}
	if !every(f.Headers, w.stream.matchesHeader) {
		return
	}
	if f.UpstreamCluster != "" && f.UpstreamCluster != w.stream.route.GetRoute().GetCluster() {
		return
	}
	if len(f.DownstreamNodes) > 0 {
		node, _ := w.stream.header("x-envoy-downstream-service-node")
		if !slices.Contains(f.DownstreamNodes, node) {
			return
		}
	}
	if p := fraction(f.GetDelay().GetPercentage()); p > 0 && f.GetDelay().GetFixedDelay() != nil {
		d := f.Delay.GetFixedDelay().AsDuration()
		if p == 100 {
			w.out.Delay = d
			w.step("filter", name, "a delay of %v", d)
		} else {
			w.out.Chances = append(w.out.Chances, Chance{Percent: p, Reason: "a fault delays the request by " + d.String()})
		}
	}
	w.abort(name, f.GetAbort())
}

func (w *walk) abort(name string, a *faultv3.FaultAbort) {
	status := int(a.GetHttpStatus())
	if _, ok := a.GetErrorType().(*faultv3.FaultAbort_GrpcStatus); ok {
		status = 200 // gRPC's own is in a header
	}
	switch p := fraction(a.GetPercentage()); {
	case status == 0 || p == 0:
	case p == 100:
		w.answer(status, cmp.Or(a.GetResponseBody(), "fault filter abort"), "fault_filter_abort", "filter %s aborts it", name)
	default:
		w.out.Chances = append(w.out.Chances, Chance{p, status, "a fault aborts the request"})
	}
}
