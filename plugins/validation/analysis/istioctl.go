package analysis

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
)

// invalid is Istio's code for all errors that its own check of a single resource finds, as caution
// is for warnings.
const invalid = "IST0106"

// istiosCode returns the code that istioctl has for what the check of a resource found; empty: it
// checks no resources of this kind, or the code is Istio's already.
func istiosCode(group string, f finding.Finding) string {
	ofChecks := strings.HasPrefix(f.Code, "COX11") || strings.HasPrefix(f.Code, "COX2")
	switch {
	case !ofChecks || group != istioDomain && !strings.HasSuffix(group, "."+istioDomain):
		return ""
	case f.Severity == finding.Error:
		return invalid
	case f.Severity == finding.Warning:
		return caution
	}
	return ""
}

// single returns what is wrong with resources by themselves, with istioctl's codes, without what
// other resources make good and what annotations suppress.
func (r *Reader) single() (all []kinds.Fault) {
	given := map[string]*Resource{}
	for i := range r.Input.Resources {
		each := &r.Input.Resources[i]
		given[each.Kind+" "+fullOf(each)] = each
	}
	for _, f := range r.Faults {
		of := given[f.Kind+" "+strings.TrimPrefix(f.Namespace+"/"+f.Name, "/")]
		if of == nil {
			of = &Resource{}
		}
		found := finding.Finding{Code: f.Code, Severity: f.Severity}
		if f.Code == rules.NeedsAddress {
			if of.allocated || r.allocates() {
				continue
			}
			if also := (Result{of, finding.Finding{Code: caution}}); !suppressed(also) {
				second := f
				second.Code = caution
				all = append(all, second)
			}
		}
		if code := istiosCode(of.Group, found); code != "" {
			f.Code, f.Own = code, f.Code
		}
		if checked := strings.HasPrefix(found.Code, "IST") || f.Own != ""; checked && suppressed(Result{of, found}) {
			continue
		}
		all = append(all, f)
	}
	return slices.Clip(all)
}
