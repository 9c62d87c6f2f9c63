package analysis

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/plugins/shared/expressions"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const largeRegex = "COX3011"

// IsLargeRegex reports whether a code is that of expressions which proxies may refuse.
func IsLargeRegex(code string) bool { return code == largeRegex }

// Proxy is a connected one, as its node says it.
type Proxy struct {
	Name string
	// Namespace and Labels are those by which it is selected; without a namespace it isn't known
	// what selects it.
	Namespace string
	Labels    map[string]string
	// Stock: it has no agent, and doesn't say that its bootstrap allows large regular expressions.
	Stock bool
}

// largeRegexes tells of regular expressions which an Envoy whose bootstrap says nothing of them
// would refuse, with all that stands in one configuration with them. who are such proxies.
func largeRegexes(large []expressions.Large, who string, as func(code, field, format string, args ...any) finding.Finding) (found []finding.Finding) {
	for _, e := range large {
		found = append(found, as(largeRegex, e.Field, "its program has about %d instructions, and %s allow %d: they would refuse all that stands beside it",
			e.Size, who, expressions.Stock).
			WithHint("set re2.max_program_size.error_level to %d in their bootstraps, as Istio's agents and coxswain bootstrap do, or write it shorter",
				envoyrules.MaxProgram))
	}
	return found
}

// expressionsOf are the large ones of a resource, and those that are made of it.
func expressionsOf(r finding.Resource) []expressions.Large {
	if r.Group == gatewayapi.Group {
		return expressions.OfRoute(r.Node, "")
	}
	return expressions.Of(r.Spec, r.Namespace)
}

// addRoute takes a row of a route of the Gateway API.
func (r *Reader) addRoute(kind objects.Kind, row *pb.Row) {
	spec := &yaml.Node{}
	if yaml.Unmarshal(row.Payload, spec) != nil {
		return
	}
	at := Resource{Resource: finding.Resource{
		Group: kind.Group(), Version: kind.Versions[0], Kind: kind.Name(), Labels: row.Labels, Annotations: row.Annotations,
	}, route: spec}
	at.Namespace, at.Name = kinds.SplitKey(row.Key)
	at.File, at.Line, at.Column = place(row.Source)
	r.Input.Resources = append(r.Input.Resources, at)
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
	for _, r := range w.resources {
		large := expressionsOf(r.Resource)
		if r.route != nil {
			large = expressions.OfRoute(r.route, "spec")
		}
		for _, f := range largeRegexes(large, who+")", finding.Warnf) {
			w.report(r, f)
		}
	}
}
