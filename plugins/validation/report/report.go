// Package report prints what checks found in files: as lines that people and editors read, as JSON,
// or as SARIF for code hosts.
package report

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Fault is one thing that is wrong, at its place.
type Fault = kinds.Fault

// CodeUnserved is the code of faults that say that nobody serves an object here.
const CodeUnserved = kinds.CodeUnserved

// IsUnserved reports whether a code is this one, or that of objects of which nobody serves a part.
func IsUnserved(code string) bool { return kinds.IsUnserved(code) }

// At returns a fault of a file that is no resource, such as plugins.yaml; line and column count
// from 1.
func At(file string, line, column int, message string) Fault {
	return Fault{File: file, Line: line, Column: column, Message: message}
}

// Formats that Write knows.
const Formats = "text, json or sarif"

// Write prints faults in a format; explain returns what there is to know about a code, or false.
func Write(w io.Writer, format string, faults []kinds.Fault, explain func(id string) (finding.Code, bool)) error {
	switch format {
	case "text":
		for _, f := range faults {
			if _, err := fmt.Fprintln(w, f.Error()); err != nil {
				return err
			}
		}
		return nil
	case "json":
		return encode(w, append([]kinds.Fault{}, faults...))
	case "sarif":
		return encode(w, newLog(faults, explain))
	}
	return fmt.Errorf("no format %q: it is %s", format, Formats)
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// LeftOut says in a line how many resources nobody serves here, and of which kinds; empty where
// there are none.
func LeftOut(found []Fault) string { return kinds.LeftOut(found) }
