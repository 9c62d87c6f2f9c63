// Package languages builds the examples in other languages and runs the conformance suite against
// them, by the command that everybody has for it.
package languages
