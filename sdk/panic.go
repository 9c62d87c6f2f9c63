package sdk

import (
	"runtime/debug"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
)

// PanicError is a panic in author code that the SDK caught.
type PanicError struct {
	// What was running.
	What  string
	Value any
	Stack []byte
}

func panicError(what string, value any) error {
	return &PanicError{What: what, Value: value, Stack: debug.Stack()}
}

// Error names the place of the panic; the whole stack is in Stack.
func (e *PanicError) Error() string {
	return text.Of(e.What, ": panic: ", e.Value, e.place())
}

// place returns the first frame of the stack below panic itself.
func (e *PanicError) place() string {
	lines := strings.Split(string(e.Stack), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") && i+3 < len(lines) {
			where, _, _ := strings.Cut(strings.TrimSpace(lines[i+3]), " +")
			return " (" + where + ")"
		}
	}
	return ""
}
