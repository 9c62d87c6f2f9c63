// Package test holds the tests of the whole tree: which layer may import which, and what the
// product's parts are licensed under. Tests with real Envoys are in test/e2e and test/live.
package test
