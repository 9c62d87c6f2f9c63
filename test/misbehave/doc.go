// Package misbehave tests that no plugin can hurt the core: one core runs the default set and, beside it, plugins that break every rule, while a
// real Envoy's traffic, its configuration and the core's readiness must not suffer.
package misbehave
