//go:build !wasip1

package text

import "fmt"

// Value returns a value as fmt.Print has it.
func Value(v any) string { return fmt.Sprint(v) }
