package analysis

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

// Suppression leaves out a code for some resources, as istioctl's flag does: CODE=KIND
// NAME.NAMESPACE, where each * stands for anything.
type Suppression struct{ code, kind, name string }

// ParseSuppression reads such a text.
func ParseSuppression(text string) (Suppression, error) {
	code, resource, ok := strings.Cut(text, "=")
	kind, name, both := strings.Cut(resource, " ")
	s := Suppression{strings.TrimSpace(code), kind, strings.TrimSpace(name)}
	if _, err := path.Match(s.name, ""); !ok || !both || s.code == "" || s.kind == "" || s.name == "" || err != nil {
		return s, fmt.Errorf(`%q must be CODE=KIND NAME.NAMESPACE, such as "IST0101=VirtualService reviews.default"`, text)
	}
	return s, nil
}

// Covers reports whether a fault is to be left out.
func (s Suppression) Covers(f kinds.Fault) bool {
	full := f.Name
	if f.Namespace != "" {
		full += "." + f.Namespace
	}
	kind, _ := path.Match(s.kind, f.Kind)
	name, _ := path.Match(s.name, full)
	return (s.code == f.Code || s.code == f.Own) && kind && name
}

// Without leaves out what suppressions cover.
func Without(faults []kinds.Fault, list []Suppression) []kinds.Fault {
	return slices.DeleteFunc(faults, func(f kinds.Fault) bool {
		return slices.ContainsFunc(list, func(s Suppression) bool { return s.Covers(f) })
	})
}

// Refuses reports whether any fault is an error.
func Refuses(faults []kinds.Fault) bool { return kinds.Refuses(faults) }
