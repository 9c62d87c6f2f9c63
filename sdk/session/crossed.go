package session

import (
	"errors"
	"fmt"
)

// LimitError is that a plugin crossed one of its limits in plugins.yaml.
type LimitError struct {
	// Limit is a key of the entry's `limits`, such as rows, or wasm.memory.
	Limit string
	// Err says what happened.
	Err error
}

// Error implements error.
func (e *LimitError) Error() string { return e.Err.Error() }

// Unwrap returns the error's cause.
func (e *LimitError) Unwrap() error { return e.Err }

// Crossed returns a LimitError whose text is made as that of fmt.Errorf.
func Crossed(limit, format string, args ...any) error {
	return &LimitError{Limit: limit, Err: fmt.Errorf(format, args...)}
}

// CrossedLimit returns the limit that an error says was crossed; none: "".
func CrossedLimit(err error) string {
	var crossed *LimitError
	if !errors.As(err, &crossed) {
		return ""
	}
	return crossed.Limit
}
