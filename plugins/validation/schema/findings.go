package schema

import (
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// findings words the errors of the API server. otherwise is the code of those that are no case of
// their own.
func findings(list field.ErrorList, otherwise string) []finding.Finding {
	var found []finding.Finding
	for _, err := range list {
		found = append(found, finding.Errorf(codeOf(err, otherwise), path(err.Field), "%s", err.ErrorBody()))
	}
	return found
}

func codeOf(err *field.Error, otherwise string) string {
	switch err.Type {
	case field.ErrorTypeRequired:
		return CodeRequired
	case field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		return CodeTooMany
	case field.ErrorTypeDuplicate:
		return CodeDuplicate
	}
	return otherwise
}

// path returns a path as findings have it: the API server names the root <nil>.
func path(p string) string {
	if p == "<nil>" {
		return ""
	}
	return p
}

// unknown warns of fields that Istio's types have and the definitions haven't.
func unknown(paths []string) []finding.Finding {
	var found []finding.Finding
	for _, p := range paths {
		found = append(found, finding.Warnf(CodeUnknown, p, "is no field of the custom resource definition").
			WithHint("a Kubernetes API server would drop it"))
	}
	return found
}
