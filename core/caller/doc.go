// Package caller finds out who is calling. It is pure: what happens and the time go in, and what to
// do comes out; it starts no goroutine, reads no clock and sends nothing. core/control does that
// for it (core/control/internal/calls/authenticate.go).
//
// The life of a caller:
//
//  1. It shows Credentials (credentials.go). Begin makes a Chain of them (chain.go), with the authenticators in declared order.
//  2. Chain.Next says which of them is to be asked, and Authenticator.Question what it gets to see.
//  3. Pending.Ask (pending.go) takes the question down as one that the session owes an answer to, or says that it owes too much already.
//  4. What comes back (an answer by Pending.Answered, or why there is none, after which Pending.Unanswered may say that the session hangs) is read by Judge
//     (verdict.go), and Chain.Heard takes the verdict. It goes on with 2 until somebody has accepted or nobody is left.
//  5. Chain.Result is who it is, or a gRPC status that says why not.
//
// testdata has such conversations as text.
package caller
