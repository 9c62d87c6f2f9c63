package grpc

import (
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	networking "istio.io/api/networking/v1alpha3"
)

// fault is what a route injects (A33); nil for nothing.
func fault(f *networking.HTTPFaultInjection) *faultv3.HTTPFault {
	out := &faultv3.HTTPFault{}
	if d := f.GetDelay(); d.GetFixedDelay() != nil {
		out.Delay = &commonv3.FaultDelay{
			FaultDelaySecifier: &commonv3.FaultDelay_FixedDelay{FixedDelay: d.GetFixedDelay()}, Percentage: percent(d.GetPercentage()),
		}
	}
	switch a := f.GetAbort().GetErrorType().(type) {
	case *networking.HTTPFaultInjection_Abort_HttpStatus:
		out.Abort = &faultv3.FaultAbort{
			ErrorType: &faultv3.FaultAbort_HttpStatus{HttpStatus: uint32(a.HttpStatus)}, Percentage: percent(f.Abort.GetPercentage()),
		}
	case *networking.HTTPFaultInjection_Abort_GrpcStatus:
		out.Abort = &faultv3.FaultAbort{
			ErrorType: &faultv3.FaultAbort_GrpcStatus{GrpcStatus: code(a.GrpcStatus)}, Percentage: percent(f.Abort.GetPercentage()),
		}
	}
	if out.Delay == nil && out.Abort == nil {
		return nil
	}
	return out
}

// refusal aborts all calls with a status of HTTP, which the client turns into one of gRPC's (A33).
// It takes none below 200.
func refusal(status uint32) *faultv3.HTTPFault {
	return &faultv3.HTTPFault{Abort: &faultv3.FaultAbort{
		ErrorType: &faultv3.FaultAbort_HttpStatus{HttpStatus: min(max(status, 200), 599)}, Percentage: percent(nil),
	}}
}

// unavailable aborts all calls.
func unavailable() *faultv3.HTTPFault {
	return &faultv3.HTTPFault{
		Abort: &faultv3.FaultAbort{ErrorType: &faultv3.FaultAbort_GrpcStatus{GrpcStatus: uint32(codes.Unavailable)}, Percentage: percent(nil)},
	}
}

// code is a status by its name, such as UNAVAILABLE; UNKNOWN for others.
func code(name string) uint32 {
	var c codes.Code
	if c.UnmarshalJSON([]byte(`"`+name+`"`)) != nil {
		c = codes.Unknown
	}
	return uint32(c)
}

// percent is all where nothing is said.
func percent(p *networking.Percent) *typev3.FractionalPercent {
	const million = 1_000_000
	if p == nil {
		return &typev3.FractionalPercent{Numerator: 100}
	}
	return &typev3.FractionalPercent{Numerator: uint32(p.Value * million / 100), Denominator: typev3.FractionalPercent_MILLION}
}
