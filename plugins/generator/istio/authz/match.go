package authz

import (
	"fmt"
	"net/netip"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Values in policies may start or end with a star, or be one: anything that isn't empty.

type headerMatcher = *routev3.HeaderMatcher

func exact(s string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: s}}
}

func prefix(s string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: s}}
}

func suffix(s string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Suffix{Suffix: s}}
}

func pattern(regex string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: regex}}}
}

func anything() *matcher.StringMatcher { return pattern(".+") }

func text(value string) *matcher.StringMatcher {
	switch {
	case value == "*":
		return anything()
	case strings.HasPrefix(value, "*"):
		return suffix(value[1:])
	case strings.HasSuffix(value, "*"):
		return prefix(strings.TrimSuffix(value, "*"))
	}
	return exact(value)
}

// identity is text after the scheme.
func identity(value string) *matcher.StringMatcher {
	switch {
	case value == "*":
		return anything()
	case strings.HasPrefix(value, "*"):
		return pattern(istio.PrincipalPattern(value))
	case strings.HasSuffix(value, "*"):
		return prefix(istio.Scheme + strings.TrimSuffix(value, "*"))
	}
	return exact(istio.Scheme + value)
}

func header(name, value string, ignoreCase bool) headerMatcher {
	if value == "*" {
		return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}}
	}
	m := text(value)
	m.IgnoreCase = ignoreCase
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: m}}
}

func sensitive(name, value string) headerMatcher { return header(name, value, false) }

// listed asks whether a value is in the list of values, joined by commas, that a header has.
func listed(name, value string) headerMatcher {
	if value == "*" {
		return sensitive(name, value)
	}
	//nolint:staticcheck // the field that Istio writes
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_SafeRegexMatch{
		SafeRegexMatch: &matcher.RegexMatcher{Regex: istio.ListedPattern(value)},
	}}
}

// addressRange reads an address or a CIDR range.
func addressRange(value string) (*core.CidrRange, error) {
	if !strings.Contains(value, "/") {
		a, err := netip.ParseAddr(value)
		if err != nil {
			return nil, fmt.Errorf("address %q: %w", value, err)
		}
		return cidr(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(value)
	if err != nil {
		return nil, fmt.Errorf("range %q: %w", value, err)
	}
	return cidr(p.Addr(), p.Bits()), nil
}

func cidr(a netip.Addr, bits int) *core.CidrRange {
	return &core.CidrRange{AddressPrefix: a.String(), PrefixLen: wrapperspb.UInt32(uint32(bits))}
}

func stringValue(m *matcher.StringMatcher) *matcher.ValueMatcher {
	return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_StringMatch{StringMatch: m}}
}

func textValue(value string) *matcher.ValueMatcher { return stringValue(text(value)) }

// element is a list with such an element.
func element(m *matcher.ValueMatcher) *matcher.ValueMatcher {
	return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_ListMatch{ListMatch: &matcher.ListMatcher{
		MatchPattern: &matcher.ListMatcher_OneOf{OneOf: m},
	}}}
}

func anyValue(list []*matcher.ValueMatcher) *matcher.ValueMatcher {
	if len(list) == 1 {
		return list[0]
	}
	return &matcher.ValueMatcher{MatchPattern: &matcher.ValueMatcher_OrMatch{OrMatch: &matcher.OrMatcher{ValueMatchers: list}}}
}

func metadata(filter string, value *matcher.ValueMatcher, path ...string) *matcher.MetadataMatcher {
	out := &matcher.MetadataMatcher{Filter: filter, Value: value}
	for _, p := range path {
		out.Path = append(out.Path, &matcher.MetadataMatcher_PathSegment{
			Segment: &matcher.MetadataMatcher_PathSegment_Key{Key: p},
		})
	}
	return out
}
