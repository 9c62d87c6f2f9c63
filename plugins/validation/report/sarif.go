package report

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Parts of a SARIF log. Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
type (
	log struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []run  `json:"runs"`
	}
	run struct {
		Tool    tool     `json:"tool"`
		Results []result `json:"results"`
	}
	tool struct {
		Driver driver `json:"driver"`
	}
	driver struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	rule struct {
		ID      string `json:"id"`
		Short   text   `json:"shortDescription"`
		Full    *text  `json:"fullDescription,omitempty"`
		HelpURI string `json:"helpUri,omitempty"`
	}
	text struct {
		Text string `json:"text"`
	}
	result struct {
		RuleID    string     `json:"ruleId"`
		Level     string     `json:"level"`
		Message   text       `json:"message"`
		Locations []location `json:"locations"`
	}
	location struct {
		Physical physical  `json:"physicalLocation"`
		Logical  []logical `json:"logicalLocations,omitempty"`
	}
	physical struct {
		Artifact artifact `json:"artifactLocation"`
		Region   region   `json:"region"`
	}
	artifact struct {
		URI string `json:"uri"`
	}
	region struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
	logical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
		Kind               string `json:"kind"`
	}
)

func newLog(faults []kinds.Fault, explain func(id string) (finding.Code, bool)) log {
	r := run{Tool: tool{driver{Name: "coxswain", Rules: rules(faults, explain)}}, Results: []result{}}
	for _, f := range faults {
		message := f.Message
		if f.Hint != "" {
			message += "; " + f.Hint
		}
		if f.Own != "" {
			message += " (" + f.Own + ")"
		}
		at := location{Physical: physical{artifact{filepath.ToSlash(f.File)}, region{max(f.Line, 1), max(f.Column, 1)}}}
		if f.Name != "" {
			at.Logical = []logical{{strings.Join([]string{f.Kind, f.Namespace, f.Name, f.Field}, "/"), "object"}}
		}
		r.Results = append(r.Results, result{f.Code, level(f.Severity), text{message}, []location{at}})
	}
	return log{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []run{r}}
}

func level(s finding.Severity) string {
	if s == finding.Info {
		return "note"
	}
	return s.String()
}

// rules explains the codes that were found, each once.
func rules(faults []kinds.Fault, explain func(id string) (finding.Code, bool)) []rule {
	list := []rule{}
	for _, f := range faults {
		if slices.ContainsFunc(list, func(r rule) bool { return r.ID == f.Code }) {
			continue
		}
		r := rule{ID: f.Code, Short: text{f.Code}}
		if code, ok := explain(f.Code); ok {
			r.Short, r.Full = text{code.Title}, &text{code.Explanation}
		}
		if number, istio := strings.CutPrefix(f.Code, "IST"); istio {
			r.HelpURI = "https://istio.io/latest/docs/reference/config/analysis/ist" + number + "/"
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b rule) int { return cmp.Compare(a.ID, b.ID) })
	return list
}
