package analysis

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
)

// caution is Istio's code for what its own check of a single resource warns of.
const caution = "IST0133"

// Alone returns what there is to say of a resource whatever others there are, beside what its
// fields mean: rules of it that are never used, and that it is of a kind to be careful with.
func Alone(r finding.Resource) []finding.Finding {
	return slices.DeleteFunc(saidOf(r), func(f finding.Finding) bool { return suppressed(Result{&Resource{Resource: r}, f}) })
}

func saidOf(r finding.Resource) []finding.Finding {
	found := largeRegexes(expressionsOf(r), "Envoys whose bootstraps say nothing of it", finding.Infof)
	switch spec := r.Spec.(type) {
	case *networking.VirtualService:
		return append(unreachableRoutes(spec), found...)
	case *networking.EnvoyFilter:
		return append(found, finding.Warnf(caution, "spec", "an EnvoyFilter depends on details of Envoy and of what "+
			"is generated for it, which change from version to version").
			WithHint("where another resource can say the same, use that; otherwise look at what proxies get after each upgrade"))
	}
	return found
}

func alone(w *world) {
	for _, r := range w.resources {
		for _, f := range saidOf(r.Resource) {
			if f.Code != largeRegex || w.proxies == nil { // regexes knows better
				w.report(r, f)
			}
		}
	}
}
