package derive

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// headers translates changes of headers; nil: there are none.
func headers(f *gateway.HTTPHeaderFilter) (*networking.Headers_HeaderOperations, *status.Problem) {
	if f == nil {
		return nil, nil
	}
	for _, list := range [][]gateway.HTTPHeader{f.Set, f.Add} {
		for _, h := range list {
			if !printable(h.Value) {
				return nil, &status.Problem{Reason: status.InvalidFilter, Message: fmt.Sprintf("header %q value contains invalid characters", h.Name)}
			}
		}
	}
	return &networking.Headers_HeaderOperations{Add: byName(f.Add), Set: byName(f.Set), Remove: f.Remove}, nil
}

// printable reports whether a header may have a value. Source: RFC 9110, 5.5.
func printable(v string) bool {
	for _, c := range []byte(v) {
		if c != '\t' && (c < ' ' || c == 0x7f) {
			return false
		}
	}
	return true
}

// byName are headers by their name in lower case: of several with one name the first counts.
func byName(list []gateway.HTTPHeader) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, h := range list {
		name := strings.ToLower(string(h.Name))
		if _, has := out[name]; !has {
			out[name] = literal(h.Value)
		}
	}
	return out
}

// literal is a header's value as Istio's API has it, where a percent sign begins a command: what is
// no format is text, each of whose percent signs is one.
func literal(v string) string {
	if envoyrules.Format(v) != nil {
		return strings.ReplaceAll(v, "%", "%%")
	}
	return v
}

// mirror translates a filter that sends copies of requests.
func (t *translation) mirror(f *gateway.HTTPRequestMirrorFilter) (*networking.HTTPMirrorPolicy, *status.Problem) {
	if f == nil {
		return nil, nil
	}
	to, problem := t.destination(gateway.BackendRef{BackendObjectReference: f.BackendRef})
	if problem != nil {
		return nil, problem
	}
	out := &networking.HTTPMirrorPolicy{Destination: to}
	if f.Fraction != nil {
		out.Percentage = &networking.Percent{Value: 100 * float64(f.Fraction.Numerator) / float64(or(f.Fraction.Denominator, 100))}
	} else if f.Percent != nil {
		out.Percentage = &networking.Percent{Value: float64(*f.Percent)}
	}
	return out, nil
}

// rewrite translates a filter that changes the path or the host; nil: it changes nothing.
func rewrite(f *gateway.HTTPURLRewriteFilter) *networking.HTTPRewrite {
	if f == nil {
		return nil
	}
	out := &networking.HTTPRewrite{Authority: string(or(f.Hostname, ""))}
	if f.Path != nil {
		switch f.Path.Type {
		case gateway.PrefixMatchHTTPPathModifier:
			out.Uri = replacement(f.Path)
		case gateway.FullPathHTTPPathModifier:
			out.UriRegexRewrite = &networking.RegexRewrite{Match: "/.*", Rewrite: or(f.Path.ReplaceFullPath, "")}
		}
	}
	if out.Uri == "" && out.UriRegexRewrite == nil && out.Authority == "" {
		return nil
	}
	return out
}

// replacement is what a prefix is replaced by, without the slash at its end that the prefix hasn't
// got either; the slash alone: the prefix goes.
func replacement(m *gateway.HTTPPathModifier) string {
	return cmp.Or(strings.TrimSuffix(or(m.ReplacePrefixMatch, ""), "/"), "/")
}

// redirect translates a filter that sends clients elsewhere. Without a port that of the scheme is
// meant, or that of the request. Source: Gateway API, HTTPRequestRedirectFilter.port.
func redirect(f *gateway.HTTPRequestRedirectFilter) *networking.HTTPRedirect {
	if f == nil {
		return nil
	}
	out := &networking.HTTPRedirect{
		RedirectCode: uint32(or(f.StatusCode, 0)), Authority: string(or(f.Hostname, "")), Scheme: or(f.Scheme, ""),
	}
	switch {
	case f.Port != nil:
		out.RedirectPort = &networking.HTTPRedirect_Port{Port: uint32(*f.Port)}
	case f.Scheme != nil:
		out.RedirectPort = &networking.HTTPRedirect_DerivePort{DerivePort: networking.HTTPRedirect_FROM_PROTOCOL_DEFAULT}
	default:
		out.RedirectPort = &networking.HTTPRedirect_DerivePort{DerivePort: networking.HTTPRedirect_FROM_REQUEST_PORT}
	}
	if f.Path != nil {
		switch f.Path.Type {
		case gateway.FullPathHTTPPathModifier:
			out.Uri = or(f.Path.ReplaceFullPath, "")
		case gateway.PrefixMatchHTTPPathModifier:
			out.PrefixRewrite = replacement(f.Path)
		}
	}
	return out
}

// anyOrigin matches all that may be an origin. Source: RFC 6454; istiod's expression.
const anyOrigin = `^[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s?#]+$`

// origin translates an origin, in which * stands for anything.
func origin(o string) *networking.StringMatch {
	switch start, isPrefix := strings.CutSuffix(o, "*"); {
	case o == "*":
		return regex(anyOrigin)
	case !strings.Contains(o, "*"):
		return exact(o)
	case isPrefix && !strings.Contains(start, "*"):
		return prefix(start)
	}
	return regex("^" + strings.ReplaceAll(regexp.QuoteMeta(o), `\*`, ".*") + "$")
}

// cors translates a filter for requests of other origins.
func cors(f *gateway.HTTPCORSFilter) *networking.CorsPolicy {
	if f == nil {
		return nil
	}
	out := &networking.CorsPolicy{UnmatchedPreflights: networking.CorsPolicy_IGNORE}
	for _, o := range f.AllowOrigins {
		if o != "" {
			out.AllowOrigins = append(out.AllowOrigins, origin(string(o)))
		}
	}
	if or(f.AllowCredentials, false) {
		out.AllowCredentials = wrapperspb.Bool(true)
	}
	for _, m := range f.AllowMethods {
		out.AllowMethods = append(out.AllowMethods, string(m))
	}
	for _, h := range f.AllowHeaders {
		out.AllowHeaders = append(out.AllowHeaders, string(h))
	}
	for _, h := range f.ExposeHeaders {
		out.ExposeHeaders = append(out.ExposeHeaders, string(h))
	}
	if f.MaxAge > 0 {
		out.MaxAge = durationpb.New(time.Duration(f.MaxAge) * time.Second)
	}
	return out
}

// span reads a duration of the API; 0: there is none.
func span(d *gateway.Duration) time.Duration {
	parsed, err := time.ParseDuration(string(or(d, "")))
	if err != nil {
		return 0
	}
	return parsed
}

// attempts is how often a request is tried again where a route says to, but not how often.
const attempts = 2

// retries translates what is to be done when a backend fails; nil: the route doesn't say.
func retries(r *gateway.HTTPRouteRetry) *networking.HTTPRetry {
	if r == nil {
		return nil
	}
	on := []string{"connect-failure", "refused-stream", "unavailable", "cancelled"}
	for _, code := range r.Codes {
		on = append(on, fmt.Sprint(int(code)))
	}
	out := &networking.HTTPRetry{Attempts: int32(or(r.Attempts, attempts)), RetryOn: strings.Join(on, ",")}
	if out.Attempts == 0 {
		out.RetryOn = ""
	}
	if r.Backoff != nil {
		out.Backoff = durationpb.New(span(r.Backoff))
	}
	return out
}

// timeouts sets a rule's: that of a backend's answer is one of each try, where there are several.
func timeouts(t *gateway.HTTPRouteTimeouts, out *networking.HTTPRoute) {
	if t == nil {
		return
	}
	if whole := span(t.Request); whole != 0 {
		out.Timeout = durationpb.New(whole)
	}
	if once := span(t.BackendRequest); once != 0 {
		if out.Retries != nil {
			out.Retries.PerTryTimeout = durationpb.New(once)
		} else {
			out.Timeout = durationpb.New(once)
		}
	}
}
