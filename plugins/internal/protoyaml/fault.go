package protoyaml

import "fmt"

// Fault is one mistake in a text.
type Fault struct {
	// Line and Column count from 1.
	Line, Column int
	// Code is one of this package, or empty.
	Code string
	// Field is the path of the field, such as spec.http[0].route; empty where the mistake is not in
	// one.
	Field string
	// Foreign is of what is left out and spoils nothing: an unknown field whose name is like none
	// that is known, rather of another version than a typing error; an entry of a map that is null.
	Foreign bool
	// Reason says what is wrong and, where that is known, what would be right.
	Reason string
}

// Error implements error.
func (f Fault) Error() string {
	if f.Field == "" {
		return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Reason)
	}
	return fmt.Sprintf("%d:%d: %s: %s", f.Line, f.Column, f.Field, f.Reason)
}
