package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	"google.golang.org/protobuf/reflect/protoreflect"
	networking "istio.io/api/networking/v1alpha3"
)

const largeRegex = "COX3011"

// A stock Envoy's bootstrap allows programs of 100 instructions. How many an expression has is
// reckoned, and may be a quarter more.
const stockProgram, programMargin = 100, stockProgram / 4

// Proxy is a connected one, as far as its bootstrap is known by what its node says.
type Proxy struct {
	Name string
	// Stock: it has no agent, and doesn't say that its bootstrap allows large regular expressions.
	Stock bool
}

// largeRegexes finds regular expressions of a VirtualService that an Envoy whose bootstrap says
// nothing of them would refuse, with all routes that stand in one configuration with them. who are
// such proxies.
func largeRegexes(s *networking.VirtualService, who string, as func(code, field, format string, args ...any) finding.Finding) (found []finding.Finding) {
	expressions(s.ProtoReflect(), "spec", func(field, pattern string) {
		size, err := envoyrules.RegexSize(pattern)
		if err != nil || size <= stockProgram-programMargin {
			return
		}
		found = append(found, as(largeRegex, field, "its program has about %d instructions, and %s allow %d: they would refuse all routes that stand beside it",
			size, who, stockProgram).
			WithHint("set re2.max_program_size.error_level to %d in their bootstraps, as Istio's agents and coxswain bootstrap do, or write it shorter", envoyrules.MaxProgram))
	})
	return found
}

// expressions calls f for each regular expression below a message, by its path, in order.
func expressions(m protoreflect.Message, at string, f func(field, pattern string)) {
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
				expressions(v.Map().Get(protoreflect.ValueOfString(k).MapKey()).Message(), fmt.Sprintf("%s[%q]", here, k), f)
			}
		case d.IsList():
			for i := range v.List().Len() {
				expressions(v.List().Get(i).Message(), fmt.Sprintf("%s[%d]", here, i), f)
			}
		case !d.IsMap():
			expressions(v.Message(), here, f)
		}
	}
}

// regexes looks at expressions for connected proxies: where some have a stock bootstrap.
func regexes(w *world) {
	var stock []string
	for _, p := range w.proxies {
		if p.Stock {
			stock = append(stock, p.Name)
		}
	}
	if len(stock) == 0 {
		return
	}
	slices.Sort(stock)
	const shown = 3
	who := "proxies that are connected (" + strings.Join(stock[:min(len(stock), shown)], ", ")
	if more := len(stock) - shown; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	for _, v := range of[*networking.VirtualService](w) {
		for _, f := range largeRegexes(v.spec, who+")", finding.Warnf) {
			w.report(v.Resource, f)
		}
	}
}
