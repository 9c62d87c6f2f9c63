// Package misbehave tests that no plugin can hurt the core: a core runs the default set and, beside
// it, plugins that break every rule, some at once, while a real Envoy's traffic, its configuration
// and the core's readiness must not suffer.
package misbehave
