// Package gatewayapi runs the Gateway API's own conformance suite against the control plane: an API
// server with the experimental definitions, a machine of test/kit/node whose pods are the suite's
// backends, our gateways' Envoys, and a mesh with sidecars, and `coxswain discovery` with the set
// for Kubernetes. Besides it has what people do to a Gateway under traffic, without a cluster.
//
// The suite and its backend are programs of the module test/gateway-conformance, which `make
// gateway-suite` builds; those of the mesh are of test/peer (`make peer`).
// docs/gateway-conformance.md keeps what they reported last.
package gatewayapi
