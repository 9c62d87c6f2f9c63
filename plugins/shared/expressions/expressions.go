// Package expressions finds the regular expressions that an Envoy compiles because of an object:
// those that it has, and those that are made of it. It says which of them an Envoy refuses whose
// bootstrap says nothing of them (re2.max_program_size.error_level), as Istio's agents' and those
// of `coxswain bootstrap` do.
package expressions

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// Stock is how many instructions a program may have where a bootstrap says nothing. How many an
// expression has is reckoned, and may be a quarter more.
const Stock, margin = 100, Stock / 4

// Large is an expression whose program may be larger than Stock.
type Large struct {
	// Field is the path of the field that it stands in, or is made of, such as
	// spec.http[0].match[0].uri.regex.
	Field string
	// Size is about how many instructions its program has.
	Size int
}

// Of returns those of an object of Istio's kinds, in order; own is its namespace. Expressions that
// no Envoy takes are left to others.
func Of(spec proto.Message, own string) (found []Large) {
	switch s := spec.(type) {
	case *networking.VirtualService:
		walk(s.ProtoReflect(), "spec", adding(&found))
	case *networking.EnvoyFilter:
		for i, p := range s.ConfigPatches {
			inStruct(structpb.NewStructValue(p.GetPatch().GetValue()), fmt.Sprintf("spec.configPatches[%d].patch.value", i), adding(&found))
		}
	case *security.AuthorizationPolicy:
		for i, r := range s.Rules {
			inRule(r, fmt.Sprintf("spec.rules[%d]", i), own, adding(&found))
		}
	}
	return found
}

// OfRoute returns those of a route of the Gateway API, or of its spec, whose path is at; n may be
// nil.
func OfRoute(n *yaml.Node, at string) (found []Large) {
	inRoute(n, at, adding(&found))
	return found
}

// adding adds those to a list that are large.
func adding(found *[]Large) func(field, pattern string) {
	return func(field, pattern string) {
		if n, err := envoyrules.RegexSize(pattern); err == nil && n > Stock-margin {
			*found = append(*found, Large{field, n})
		}
	}
}

// IsStock reports whether a proxy's bootstrap may be one that says nothing of expressions, by what
// its node's metadata says: COXSWAIN_NO_AGENT without COXSWAIN_REGEX_PROGRAM. The bootstraps of
// agents allow large ones.
func IsStock(noAgent, program bool) bool { return noAgent && !program }

// walk looks for expressions below a message.
func walk(m protoreflect.Message, at string, f func(field, pattern string)) {
	switch x := m.Interface().(type) {
	case *networking.StringMatch:
		if p := x.GetRegex(); p != "" {
			f(at+".regex", p)
		}
		return
	case *networking.RegexRewrite:
		f(at+".match", x.Match)
		return
	}
	var fields []protoreflect.FieldDescriptor
	m.Range(func(d protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if d.Message() != nil {
			fields = append(fields, d)
		}
		return true
	})
	slices.SortFunc(fields, func(a, b protoreflect.FieldDescriptor) int { return a.Index() - b.Index() })
	for _, d := range fields {
		v, here := m.Get(d), at+"."+d.JSONName()
		switch {
		case d.IsMap() && d.MapValue().Message() != nil:
			var keys []string
			v.Map().Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool { keys = append(keys, k.String()); return true })
			slices.Sort(keys)
			for _, k := range keys {
				walk(v.Map().Get(protoreflect.ValueOfString(k).MapKey()).Message(), fmt.Sprintf("%s[%q]", here, k), f)
			}
		case d.IsList():
			for i := range v.List().Len() {
				walk(v.List().Get(i).Message(), fmt.Sprintf("%s[%d]", here, i), f)
			}
		case !d.IsMap():
			walk(v.Message(), here, f)
		}
	}
}

// inStruct looks for Envoy's RegexMatcher in a patch, which has its expression in a field regex.
func inStruct(v *structpb.Value, at string, f func(field, pattern string)) {
	for i, e := range v.GetListValue().GetValues() {
		inStruct(e, fmt.Sprintf("%s[%d]", at, i), f)
	}
	fields := v.GetStructValue().GetFields()
	var keys []string
	for k := range fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if p := fields[k].GetStringValue(); k == "regex" && p != "" {
			f(at+".regex", p)
			continue
		}
		inStruct(fields[k], at+"."+k, f)
	}
}

// inRoute looks for matches of routes of the Gateway API: mappings whose type says that their
// value, or their service and method, are expressions.
func inRoute(n *yaml.Node, at string, f func(field, pattern string)) {
	if n == nil {
		return
	}
	for i, c := range n.Content {
		switch n.Kind {
		case yaml.DocumentNode:
			inRoute(c, at, f)
		case yaml.SequenceNode:
			inRoute(c, fmt.Sprintf("%s[%d]", at, i), f)
		case yaml.MappingNode:
			if i%2 == 1 {
				inRoute(c, strings.TrimPrefix(at+"."+n.Content[i-1].Value, "."), f)
			}
		}
	}
	var match struct{ Type, Value, Service, Method string }
	if n.Kind != yaml.MappingNode || n.Decode(&match) != nil || match.Type != "RegularExpression" {
		return
	}
	for _, each := range [][2]string{{"value", match.Value}, {"service", match.Service}, {"method", match.Method}} {
		if each[1] != "" {
			f(at+"."+each[0], each[1])
		}
	}
}

// inRule looks at what a rule of a policy asks of identities, and of lists in headers: Envoy is
// told of these by expressions.
func inRule(r *security.Rule, at, own string, f func(field, pattern string)) {
	values := func(field string, list []string, pattern func(string) string) {
		for i, v := range list {
			if p := pattern(v); p != "" {
				f(fmt.Sprintf("%s[%d]", field, i), p)
			}
		}
	}
	account := func(v string) string { return istio.ServiceAccountPattern(v, own) }
	for i, from := range r.GetFrom() {
		s, here := from.GetSource(), fmt.Sprintf("%s.from[%d].source.", at, i)
		values(here+"principals", s.GetPrincipals(), principal)
		values(here+"notPrincipals", s.GetNotPrincipals(), principal)
		values(here+"trustDomains", s.GetTrustDomains(), trustDomain)
		values(here+"notTrustDomains", s.GetNotTrustDomains(), trustDomain)
		values(here+"serviceAccounts", s.GetServiceAccounts(), account)
		values(here+"notServiceAccounts", s.GetNotServiceAccounts(), account)
		values(here+"namespaces", s.GetNamespaces(), istio.NamespacePattern)
		values(here+"notNamespaces", s.GetNotNamespaces(), istio.NamespacePattern)
	}
	byKey := map[string]func(string) string{
		"source.principal": principal, "source.trustDomain": trustDomain, "source.serviceAccount": account, "source.namespace": istio.NamespacePattern,
	}
	for i, w := range r.GetWhen() {
		pattern := byKey[w.GetKey()]
		if strings.HasPrefix(w.GetKey(), "request.experimental.inline.headers") {
			pattern = listed
		}
		if pattern != nil {
			values(fmt.Sprintf("%s.when[%d].values", at, i), w.GetValues(), pattern)
			values(fmt.Sprintf("%s.when[%d].notValues", at, i), w.GetNotValues(), pattern)
		}
	}
}

// Texts for which something else than an expression is enough have none.

func principal(value string) string {
	if len(value) > 1 && value[0] == '*' {
		return istio.PrincipalPattern(value)
	}
	return ""
}

func trustDomain(value string) string {
	if value != "*" && strings.Contains(value, "*") {
		return istio.TrustDomainPattern(value)
	}
	return ""
}

func listed(value string) string {
	if value == "*" {
		return ""
	}
	return istio.ListedPattern(value)
}
