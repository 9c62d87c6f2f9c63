package simulator

//lint:file-ignore SA1019 this is the file that reads fields which others have replaced: those who configure Envoys still use them

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// bound reports whether a listener has a socket of its own.
func bound(l *listenerv3.Listener) bool {
	if l.BindToPort != nil {
		return l.BindToPort.Value
	}
	v1 := l.GetDeprecatedV1().GetBindToPort()
	return v1 == nil || v1.Value
}

// accepted are the names that a peer's certificate must have one of; none: any.
func accepted(c *tlsv3.CommonTlsContext) (names []*matcherv3.StringMatcher) {
	for _, v := range []*tlsv3.CertificateValidationContext{c.GetValidationContext(), c.GetCombinedValidationContext().GetDefaultValidationContext()} {
		names = append(names, v.GetMatchSubjectAltNames()...)
		for _, m := range v.GetMatchTypedSubjectAltNames() {
			names = append(names, m.Matcher)
		}
	}
	return names
}

// action is what becomes of a header that is there already.
func action(o *corev3.HeaderValueOption) corev3.HeaderValueOption_HeaderAppendAction {
	if old := o.GetAppend(); old != nil && !old.Value {
		return corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	}
	return o.GetAppendAction()
}

// matchHeaderValue, of a header that is there or counts as empty.
func matchHeaderValue(m *routev3.HeaderMatcher, value string) bool {
	switch p := m.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_StringMatch:
		return matchString(p.StringMatch, value)
	case *routev3.HeaderMatcher_ExactMatch:
		return value == p.ExactMatch
	case *routev3.HeaderMatcher_PrefixMatch:
		return strings.HasPrefix(value, p.PrefixMatch)
	case *routev3.HeaderMatcher_SuffixMatch:
		return strings.HasSuffix(value, p.SuffixMatch)
	case *routev3.HeaderMatcher_ContainsMatch:
		return strings.Contains(value, p.ContainsMatch)
	case *routev3.HeaderMatcher_SafeRegexMatch:
		return matchRegex(p.SafeRegexMatch.GetRegex(), value)
	case *routev3.HeaderMatcher_RangeMatch:
		n, err := strconv.ParseInt(value, 10, 64)
		return err == nil && p.RangeMatch.Start <= n && n < p.RangeMatch.End
	}
	return false
}
