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
