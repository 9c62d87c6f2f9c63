// Package guard says what would change by what a plugin says, and whether that looks like an
// accident. It is pure: it starts no goroutine, reads no clock and changes nothing.
//
// A Difference (difference.go) is what rows and resources would be others if one plugin took
// another's place; Guard (guard.go) judges it.
package guard
