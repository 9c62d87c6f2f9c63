// Package conformance pins the Gateway API's own conformance suite and its backend, and is the
// suite as a program: make gateway-conformance builds both, and test/gatewayapi runs them. It is a
// module of its own: nothing of it reaches Coxswain's.
package conformance
