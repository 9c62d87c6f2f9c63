package kinds

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// FaultTable is the table in which config sources say what is wrong with what they read: keys are
// FILE:LINE:COLUMN (with `#` and a number where there are several, and with `@` and its name before
// that where a plugin judges what others read), payloads are Faults as JSON.
const FaultTable = state.Faults

// Fault is one mistake in a file. An empty Kind means that the document's kind could not be read.
type Fault struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Code is such as COX1003, which plugins/validation explains. Own is ours, where Code is
	// Istio's for many things of which ours says one.
	Code     string           `json:"code,omitempty"`
	Own      string           `json:"own,omitempty"`
	Severity finding.Severity `json:"severity"`
	// Field is a path from the document's root, such as spec.http[0].route.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Hint says what to do, where the message doesn't.
	Hint string `json:"hint,omitempty"`
	// Reason is a word that faults of one sort share; empty: the code. Left is how many records
	// there are no rows of because of it, Kept how many keep those that they had; both 0: one, as
	// the severity says.
	Reason string `json:"reason,omitempty"`
	Left   int    `json:"left,omitempty"`
	Kept   int    `json:"kept,omitempty"`
	// Since is when it was shown first.
	Since time.Time `json:"since,omitzero"`
}

// Log writes the fault's line, which says the same each time; what it is about is in its fields.
func (f Fault) Log(log func(level sdk.Level, text string, args ...any)) {
	words := map[finding.Severity]string{finding.Error: "resource refused", finding.Warning: "resource warned of"}[f.Severity]
	args := []any{"file", f.File}
	if f.Line > 0 {
		args = append(args, "line", f.Line, "column", f.Column)
	}
	for _, part := range [][2]string{{"object", f.resource()}, {"field", f.Field}, {"code", f.Code}, {"why", f.Message}, {"hint", f.Hint}} {
		if part[1] != "" {
			args = append(args, part[0], part[1])
		}
	}
	log(f.Level(), cmp.Or(words, "resource noted"), args...)
}

// Level is that of the line that the fault makes in a log.
func (f Fault) Level() sdk.Level {
	if f.Severity == finding.Info {
		return sdk.Info
	}
	return sdk.Warn
}

// Place is FILE:LINE:COLUMN.
func (f Fault) Place() string { return Source(f.File, f.Line, f.Column) }

// Error returns all of it in one line, with the severity where it is no error.
func (f Fault) Error() string {
	text := f.Place() + ": "
	if f.Severity != finding.Error {
		text += f.Severity.String() + ": "
	}
	if resource := f.resource(); resource != "" {
		text += resource + ": "
	}
	return text + f.Text()
}

// Text returns what is wrong in one line, without where it is but for the field.
func (f Fault) Text() string {
	var text string
	if f.Field != "" {
		text += f.Field + ": "
	}
	text += f.Message
	if f.Hint != "" {
		text += "; " + f.Hint
	}
	switch {
	case f.Own != "":
		text += " (" + f.Code + ", " + f.Own + ")"
	case f.Code != "":
		text += " (" + f.Code + ")"
	}
	return text
}

// resource is KIND NAMESPACE/NAME, as far as it is known.
func (f Fault) resource() string {
	switch {
	case f.Kind == "" || f.Name == "":
		return f.Kind
	case f.Namespace == "":
		return f.Kind + " " + f.Name
	}
	return f.Kind + " " + f.Namespace + "/" + f.Name
}

// NewFault says which file a mistake is in. A field whose name is like none that is known is a
// warning: it may be of another version of Istio's API, and is left out, as istiod and a Kubernetes
// API server do.
func NewFault(file string, f protoyaml.Fault) Fault {
	fault := Fault{File: file, Line: f.Line, Column: f.Column, Code: cmp.Or(f.Code, protoyaml.CodeValue), Field: f.Field, Message: f.Reason}
	if f.Foreign {
		fault.Severity, fault.Hint = finding.Warning, "it is left out"
	}
	return fault
}

// Refuses reports whether any fault is an error.
func Refuses(list []Fault) bool {
	return slices.ContainsFunc(list, func(f Fault) bool { return f.Severity == finding.Error })
}
