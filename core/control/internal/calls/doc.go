// Package calls asks plugins who is calling, what resources were made from, and has them answer
// calls of gRPC, for goroutines that wait: authenticators in declared order, the generator of a
// view, and the plugin that offers a method. What is owed, and what an answer means, is decided by
// core/caller; who does not explain owes nothing.
package calls
