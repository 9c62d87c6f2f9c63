package analysis

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"istio.io/api/annotation"
)

const (
	unknownAnnotation    = "IST0108"
	deprecatedAnnotation = "IST0135"
	misplacedAnnotation  = "IST0107"
)

// annotations finds annotations of Istio's that it doesn't know, or not any more. Source:
// istio.io/api/annotation.
func annotations(w *world) {
	known := map[string]*annotation.Instance{}
	for _, a := range annotation.AllResourceAnnotations() {
		known[a.Name] = a
	}
	for _, r := range w.resources {
		for _, name := range slices.Sorted(maps.Keys(r.Annotations)) {
			domain, _, _ := strings.Cut(name, "/")
			a := known[name]
			at := `metadata.annotations["` + name + `"]`
			if a != nil && looked[r.Kind] != "" && !attaches(a, r.Kind) {
				w.report(r, finding.Warnf(misplacedAnnotation, at, "Misplaced annotation: %s has no effect on a %s", name, r.Kind))
			}
			switch {
			case a == nil && (domain == "istio.io" || strings.HasSuffix(domain, ".istio.io")) && name != suppression && !strings.HasPrefix(domain, "internal."):
				w.report(r, finding.Warnf(unknownAnnotation, at, "Unknown annotation: %s", name))
			case a != nil && a.Deprecated:
				w.report(r, finding.Finding{
					Code: deprecatedAnnotation, Severity: finding.Info, Field: at,
					Message: "Annotation \"" + name + "\" has been deprecated and may not work in future Istio versions.",
				})
			}
		}
	}
}

// attaches reports whether an annotation means something on an object of Kubernetes of this kind.
func attaches(a *annotation.Instance, kind string) bool {
	return slices.ContainsFunc(a.Resources, func(r annotation.ResourceTypes) bool { return r == annotation.Any || r.String() == kind })
}
