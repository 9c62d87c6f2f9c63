// Package fleet is a load client for what the shared one can't do: sidecars that each have an
// address, labels and tracing tags of their own, TLS, and sidecars that read slowly. Like an Envoy
// each asks for clusters, the endpoints of those, listeners and the routes that these name, and
// acknowledges everything, in state of the world. Responses are not decoded: the few fields that
// count are picked out of their bytes.
package fleet
