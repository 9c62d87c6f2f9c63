package route

import (
	"net/http"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hosts "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	priorities "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

const (
	// defaultRetryOn are failures after which the server has not begun, or said that it may be
	// asked again.
	defaultRetryOn     = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"
	retriableCodes     = "retriable-status-codes"
	defaultAttempts    = 2
	maxHostSelections  = 5
	priorityUpdateRate = 2
)

// retryPolicy is the route's, or else the mesh's, or else Istio's default; nil where retries are
// off. hashed: the load balancer picks by a hash, so that avoiding the host tried before makes no
// sense.
func retryPolicy(route, mesh *networking.HTTPRetry, hashed bool) *routev3.RetryPolicy {
	in := route
	if in == nil {
		in = mesh
	}
	if in == nil {
		return DefaultRetryPolicy(hashed)
	}
	if in.Attempts <= 0 {
		return nil
	}
	out := DefaultRetryPolicy(hashed)
	out.NumRetries = wrapperspb.UInt32(uint32(in.Attempts))
	if in.RetryOn != "" {
		out.RetryOn, out.RetriableStatusCodes = retryOn(in.RetryOn)
	}
	out.PerTryTimeout = in.PerTryTimeout
	if in.Backoff != nil {
		out.RetryBackOff = &routev3.RetryPolicy_RetryBackOff{BaseInterval: in.Backoff}
	}
	if v := in.RetryIgnorePreviousHosts; v != nil {
		out.RetryHostPredicate = nil
		if v.Value {
			out.RetryHostPredicate = previousHosts()
		}
	}
	if in.GetRetryRemoteLocalities().GetValue() {
		out.RetryPriority = &routev3.RetryPolicy_RetryPriority{
			Name: "envoy.retry_priorities.previous_priorities",
			ConfigType: &routev3.RetryPolicy_RetryPriority_TypedConfig{
				TypedConfig: encode.Any(&priorities.PreviousPrioritiesConfig{UpdateFrequency: priorityUpdateRate}),
			},
		}
	}
	return out
}

// DefaultRetryPolicy is what holds where nothing was said.
func DefaultRetryPolicy(hashed bool) *routev3.RetryPolicy {
	out := &routev3.RetryPolicy{
		NumRetries:                    wrapperspb.UInt32(defaultAttempts),
		RetryOn:                       defaultRetryOn,
		HostSelectionRetryMaxAttempts: maxHostSelections,
	}
	if !hashed {
		out.RetryHostPredicate = previousHosts()
	}
	return out
}

func previousHosts() []*routev3.RetryPolicy_RetryHostPredicate {
	return []*routev3.RetryPolicy_RetryHostPredicate{{
		Name:       "envoy.retry_host_predicates.previous_hosts",
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: encode.Any(&hosts.PreviousHostsPredicate{})},
	}}
}

// retryOn splits status codes off a list of conditions. Numbers that are no status stay where they
// are.
func retryOn(s string) (string, []uint32) {
	var conditions []string
	var codes []uint32
	for _, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		if code, err := strconv.Atoi(part); err == nil && http.StatusText(code) != "" {
			codes = append(codes, uint32(code))
		} else if part != "" {
			conditions = append(conditions, part)
		}
	}
	out := strings.Join(conditions, ",")
	if len(codes) > 0 && !strings.Contains(out, retriableCodes) {
		out += "," + retriableCodes // with nothing before it, too, as istiod has it; Envoy reads over the comma
	}
	return out, codes
}
