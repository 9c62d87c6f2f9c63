// Package finding is what checks of configuration are given and what they say: resources, findings,
// and codes with their explanations. It has no opinion and imports no check, so that all can import
// it.
//
// Codes are COX and four digits, or Istio's own (IST0101) where it has a message for the same
// thing:
//
//	COX10xx  the text: YAML, fields, types
//	COX11xx  the schemas and CEL rules of the custom resource definitions
//	COX2xxx  what the fields of one resource mean
//	COX3xxx  what resources mean to each other, where Istio has no code
//	COX4xxx  what was made of them
package finding

import "fmt"

// Finding is one thing that a check has to say about a resource.
type Finding struct {
	// Code is such as COX1101 or IST0101.
	Code     string
	Severity Severity
	// Field is a path from the resource's root, such as spec.http[0].route[1].weight or
	// metadata.name; a map's key stands as spec.selector.matchLabels["app"]. It is empty where the
	// finding is about the whole.
	Field string
	// Message says what is wrong.
	Message string
	// Hint says what to do; it may be empty where the message says it.
	Hint string
}

// Severity says what follows of a finding. The zero value is an error, so that none is taken
// lightly by accident.
type Severity uint8

const (
	// Error refuses the resource.
	Error Severity = iota
	// Warning is for what is served and probably not meant.
	Warning
	// Info is for what is worth knowing.
	Info
)

// String returns the severity's name.
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	}
	return "info"
}

// MarshalText and UnmarshalText make JSON hold the words.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Severity) UnmarshalText(text []byte) error {
	for _, known := range []Severity{Error, Warning, Info} {
		if known.String() == string(text) {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("no severity: %q", text)
}

// Errorf returns an error at a field.
func Errorf(code, field, format string, args ...any) Finding {
	return Finding{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Warnf returns a warning at a field.
func Warnf(code, field, format string, args ...any) Finding {
	return Finding{Code: code, Severity: Warning, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Infof returns a finding of what is worth knowing.
func Infof(code, field, format string, args ...any) Finding {
	return Finding{Code: code, Severity: Info, Field: field, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns the finding with a hint.
func (f Finding) WithHint(format string, args ...any) Finding {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}

// Refuses reports whether any finding is an error.
func Refuses(list []Finding) bool {
	for _, f := range list {
		if f.Severity == Error {
			return true
		}
	}
	return false
}
