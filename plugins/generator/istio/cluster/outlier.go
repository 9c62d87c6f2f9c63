package cluster

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// outliers says when an endpoint is left out for a while. Only what was asked for is enforced: never success rates.
func (in *Outbound) outliers(c *clusterv3.Cluster) {
	o := in.Policy.GetOutlierDetection()
	if o == nil {
		return
	}
	out := &clusterv3.OutlierDetection{
		Interval:             o.Interval,
		BaseEjectionTime:     o.BaseEjectionTime,
		EnforcingSuccessRate: wrapperspb.UInt32(0),
	}
	out.Consecutive_5Xx, out.EnforcingConsecutive_5Xx = enforced(o.Consecutive_5XxErrors)
	out.ConsecutiveGatewayFailure, out.EnforcingConsecutiveGatewayFailure = enforced(o.ConsecutiveGatewayErrors)
	if o.MaxEjectionPercent > 0 {
		out.MaxEjectionPercent = wrapperspb.UInt32(uint32(o.MaxEjectionPercent))
	}
	if o.SplitExternalLocalOriginErrors {
		out.SplitExternalLocalOriginErrors = true
		out.ConsecutiveLocalOriginFailure, out.EnforcingConsecutiveLocalOriginFailure = enforced(o.ConsecutiveLocalOriginFailures)
		out.EnforcingLocalOriginSuccessRate = wrapperspb.UInt32(0)
	}
	c.OutlierDetection = out
	if o.MinHealthPercent >= 0 {
		c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{Value: float64(o.MinHealthPercent)}
	}
}

func enforced(n *wrapperspb.UInt32Value) (limit, share *wrapperspb.UInt32Value) {
	if n == nil {
		return nil, nil
	}
	if n.Value > 0 {
		return wrapperspb.UInt32(n.Value), wrapperspb.UInt32(100)
	}
	return wrapperspb.UInt32(0), wrapperspb.UInt32(0)
}
