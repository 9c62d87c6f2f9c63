//lint:file-ignore SA1019 deprecated fields are read to say so, and to check them all the same

package rules

import (
	"slices"
	"strconv"
	"strings"
	"time"

	networking "istio.io/api/networking/v1alpha3"
)

const (
	badFault = "COX2110"
	badRetry = "COX2111"
	badCORS  = "COX2113"
)

// retryConditions that proxies know. Source: Envoy, router filter, x-envoy-retry-on and
// x-envoy-retry-grpc-on.
var retryConditions = []string{
	"5xx", "cancelled", "connect-failure", "deadline-exceeded", "envoy-ratelimited", "gateway-error", "http3-post-connect-failure", "internal",
	"refused-stream", "reset", "reset-before-request", "resource-exhausted", "retriable-4xx", "retriable-headers", "retriable-status-codes",
	"unavailable",
}

func (c *checker) retries(at path, r *networking.HTTPRetry) {
	if vainRetry(r) {
		c.fail(badRetry, at, "http retry policy configured when attempts are set to 0 (disabled)").hint("set attempts, or remove the rest")
	}
	c.retryPolicy(at, r)
}

// vainRetry reports whether a policy says how to try again, and not to.
func vainRetry(r *networking.HTTPRetry) bool {
	more := r.GetPerTryTimeout() != nil || r.GetRetryOn() != "" || r.GetRetryRemoteLocalities() != nil || r.GetBackoff() != nil
	return r.GetAttempts() == 0 && more
}

func (c *checker) retryPolicy(at path, r *networking.HTTPRetry) {
	if r == nil {
		return
	}
	if r.Attempts < 0 {
		c.fail(badRetry, at.field("attempts"), "attempts cannot be negative")
	}
	c.duration(at.field("perTryTimeout"), r.PerTryTimeout, true)
	c.duration(at.field("backoff"), r.Backoff, false)
	if r.RetryOn == "" {
		return
	}
	for each := range strings.SplitSeq(r.RetryOn, ",") {
		each = strings.TrimSpace(each)
		status, err := strconv.Atoi(each)
		isStatus := err == nil && status >= 100 && status <= 599
		if !isStatus && !slices.Contains(retryConditions, each) {
			c.fail(badRetry, at.field("retryOn"), "%s is not a valid retryOn policy", quote(each)).hint("write statuses and any of %s",
				strings.Join(retryConditions, ", "))
		}
	}
}

func (c *checker) fault(at path, f *networking.HTTPFaultInjection) {
	if f == nil {
		return
	}
	if f.Abort == nil && f.Delay == nil {
		c.fail(badFault, at, "HTTP fault injection must have an abort and/or a delay")
	}
	c.abort(at.field("abort"), f.Abort)
	c.delay(at.field("delay"), f.Delay)
}

// grpcStatuses are the names of gRPC's codes.
var grpcStatuses = []string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
	"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
	"UNAUTHENTICATED",
}

func (c *checker) abort(at path, a *networking.HTTPFaultInjection_Abort) {
	if a == nil {
		return
	}
	c.percent(at.field("percentage").field("value"), a.GetPercentage().GetValue())
	switch t := a.ErrorType.(type) {
	case *networking.HTTPFaultInjection_Abort_HttpStatus:
		if t.HttpStatus < 200 || t.HttpStatus > 600 {
			c.fail(badFault, at.field("httpStatus"), "HTTP status %d is not in range 200..599", t.HttpStatus)
		}
	case *networking.HTTPFaultInjection_Abort_GrpcStatus:
		if !slices.Contains(grpcStatuses, t.GrpcStatus) {
			c.fail(badFault, at.field("grpcStatus"), "gRPC status %s is not supported", quote(t.GrpcStatus)).hint("write one of %s",
				strings.Join(grpcStatuses, ", "))
		}
	case *networking.HTTPFaultInjection_Abort_Http2Error:
		c.fail(badFault, at.field("http2Error"), "HTTP/2 abort fault injection not supported").hint("use httpStatus or grpcStatus")
	default:
		c.warn(badFault, at, "an abort without httpStatus or grpcStatus does nothing")
	}
}

func (c *checker) delay(at path, d *networking.HTTPFaultInjection_Delay) {
	if d == nil {
		return
	}
	if old := d.GetPercent(); old != 0 {
		c.obsolete(at.field("percent"), "use percentage instead")
		c.percent(at.field("percent"), float64(old))
	}
	c.percent(at.field("percentage").field("value"), d.GetPercentage().GetValue())
	switch t := d.HttpDelayType.(type) {
	case *networking.HTTPFaultInjection_Delay_FixedDelay:
		c.duration(at.field("fixedDelay"), t.FixedDelay, false)
	case *networking.HTTPFaultInjection_Delay_ExponentialDelay:
		c.duration(at.field("exponentialDelay"), t.ExponentialDelay, false)
		c.fail(badFault, at.field("exponentialDelay"), "exponentialDelay not supported yet").hint("use fixedDelay")
	}
}

// methods of HTTP that a CORS policy can allow.
var methods = []string{"*", "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"}

func (c *checker) cors(at path, p *networking.CorsPolicy) {
	if p == nil {
		return
	}
	for i, o := range p.AllowOrigins {
		here := at.field("allowOrigins").index(i)
		if o.GetExact()+o.GetPrefix()+o.GetRegex() == "" {
			c.fail(badCORS, here, "an origin must be matched by exact, prefix or regex, and by something that is not empty")
			continue
		}
		c.stringMatch(here, o)
	}
	if len(p.GetAllowOrigin()) > 0 {
		c.obsolete(at.field("allowOrigin"), "use allowOrigins instead")
	}
	for i, m := range p.AllowMethods {
		if !slices.Contains(methods, m) {
			c.fail(badCORS, at.field("allowMethods").index(i), "%s is not a supported HTTP method", quote(m)).hint("write one of %s",
				strings.Join(methods, ", "))
		}
	}
	for i, name := range p.AllowHeaders {
		c.headerName(at.field("allowHeaders").index(i), name)
	}
	for i, name := range p.ExposeHeaders {
		c.headerName(at.field("exposeHeaders").index(i), name)
	}
	if p.MaxAge != nil && p.MaxAge.AsDuration() != 0 {
		c.precise(at.field("maxAge"), p.MaxAge, time.Second)
	}
}
