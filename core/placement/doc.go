// Package placement is about the views that a generator places connections into: what it is asked
// of them, in whose turn, and when it and the core may forget them. It is pure: what happens and
// the time go in, and what to send comes out; it starts no goroutine, reads no clock and sends
// nothing. core/control does that for it (core/control/internal/serving/placer.go).
//
// The life of a Wish (wish.go), what a connection wants of a view:
//
//  1. view.View counts it, and says what nobody wanted before. That waits in the generator's Turns
//     (turns.go), for the connection's turn.
//  2. Turns.Next gives it out in pieces, never more than the generator does in a moment, and Asked
//     (asked.go) notes what it owes an answer to.
//  3. A connection that is moved must not lose what it has: Turns.Promised has that asked for at
//     once, and Asked.Holds has the revision wait for it.
//  4. When a connection has gone, Left (left.go) keeps its wish for a while, as if it had stayed.
//  5. What nobody wants any more the generator is told, and Unused (unused.go) notes what it no
//     longer needs: once it has said that it knows, views, parts and bodies are let go.
//
// A generator moves a connection between views in a revision: Places (places.go) has where it is,
// and where it will be. What it sees is another thing: Stale (stale.go) has what of its views is
// still to be shown to it, which happens at once for all connections.
//
// Connections and sessions are type parameters: so nothing can be sent to them from here. testdata
// has such wishes as text.
package placement
