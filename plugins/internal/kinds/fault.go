package kinds

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
)

// FaultTable is the table in which config sources say what is wrong with what they read: keys are FILE:LINE:COLUMN (with
// `#` and a number where there are several), payloads are Faults as JSON.
const FaultTable = "faults"

// Fault is one mistake in a file. An empty Kind means that the document's kind could not be read.
type Fault struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Field is a path from the document's root, such as spec.http[0].route.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// Place is FILE:LINE:COLUMN.
func (f Fault) Place() string { return Source(f.File, f.Line, f.Column) }

func (f Fault) Error() string {
	text := f.Place() + ": "
	if resource := f.resource(); resource != "" {
		text += resource + ": "
	}
	if f.Field != "" {
		text += f.Field + ": "
	}
	return text + f.Message
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

// NewFault says which file a mistake is in.
func NewFault(file string, f protoyaml.Fault) Fault {
	return Fault{File: file, Line: f.Line, Column: f.Column, Field: f.Field, Message: f.Reason}
}
