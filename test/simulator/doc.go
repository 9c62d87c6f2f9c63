// Package simulator compares the simulator with a real Envoy, rule by rule: configurations in
// testdata whose routes and filter chains answer with their own names, and requests and connections
// in all combinations.
package simulator
