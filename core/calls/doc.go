// Package calls asks plugins who is calling, and has them answer calls of gRPC, for goroutines that
// wait: authenticators in declared order, and the plugin that offers a method. What is owed, and
// what an answer means, is decided by core/caller.
package calls
