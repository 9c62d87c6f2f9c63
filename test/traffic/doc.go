// Package traffic tests what configuration does to traffic: scenarios in testdata (resources,
// calls, and what must come of them, each with the document that says so) are played on a gateway
// that is a real Envoy. All of them are configured at once, each with hosts of its own. In the same
// run they are played on the simulator, over what the control plane has for the gateway, but for
// calls that depend on what a walk can't know (`envoys:`).
package traffic
