package route

import (
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	networking "istio.io/api/networking/v1alpha3"
)

func fault(in *networking.HTTPFaultInjection) *faultv3.HTTPFault {
	return &faultv3.HTTPFault{Delay: delay(in.GetDelay()), Abort: abort(in.GetAbort())}
}

func delay(in *networking.HTTPFaultInjection_Delay) *common.FaultDelay {
	if in.GetFixedDelay() == nil {
		return nil
	}
	out := &common.FaultDelay{FaultDelaySecifier: &common.FaultDelay_FixedDelay{FixedDelay: in.GetFixedDelay()}}
	if in.Percentage != nil {
		out.Percentage = millionth(in.Percentage)
	} else {
		out.Percentage = &typev3.FractionalPercent{Numerator: uint32(in.Percent)} // the older field is still served; nothing is delayed without either
	}
	return out
}

func abort(in *networking.HTTPFaultInjection_Abort) *faultv3.FaultAbort {
	if in == nil {
		return nil
	}
	out := &faultv3.FaultAbort{}
	switch e := in.ErrorType.(type) {
	case *networking.HTTPFaultInjection_Abort_HttpStatus:
		out.ErrorType = &faultv3.FaultAbort_HttpStatus{HttpStatus: uint32(e.HttpStatus)}
	case *networking.HTTPFaultInjection_Abort_GrpcStatus:
		out.ErrorType = &faultv3.FaultAbort_GrpcStatus{GrpcStatus: grpcStatus(e.GrpcStatus)}
	default:
		return nil
	}
	if in.Percentage != nil {
		out.Percentage = millionth(in.Percentage)
	}
	return out
}

// grpcStatus reads a status by name; names that gRPC doesn't know count as UNKNOWN.
func grpcStatus(name string) uint32 {
	var c codes.Code
	if err := c.UnmarshalJSON([]byte(`"` + name + `"`)); err != nil {
		return uint32(codes.Unknown)
	}
	return uint32(c)
}
