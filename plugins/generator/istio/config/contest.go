package config

import (
	"fmt"
	"strings"
)

// Contest is two resources of a table, by their keys, and what both want.
type Contest struct {
	Table, A, B, Thing string
	// Decided: A was there first, and keeps it from B.
	Decided bool
}

// String returns the contest in words for a log.
func (c Contest) String() string {
	_, kind, _ := strings.Cut(c.Table, "/")
	return fmt.Sprintf("%s %s and %s", kind, c.A, c.B)
}
