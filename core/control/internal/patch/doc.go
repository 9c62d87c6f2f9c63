// Package patch asks patches what becomes of resources, and remembers what they said. It is pure:
// what happens and the time go in, and calls to be sent and snapshots come out; it starts no
// goroutine, reads no clock and sends nothing. core/control does that for it
// (internal/serving/patches.go).
//
// The life of a resource that a generator has made:
//
//  1. Made.Of (made.go) is asked for a view after a chain of patches. If that is known for the view's snapshot, it is the same as before.
//  2. Otherwise each resource goes through the chain, and Patcher.result (patcher.go) says what a patch made of it. What is not known yet becomes a call
//     (Patcher.Calls), in JSON where the patch wants that (codec.go), and there is no answer about the view until all calls are over.
//  3. A call ends in Patcher.Answered, Patcher.Undelivered or, when it took too long, Patcher.Late (calls.go). Results are kept, failures too.
//     What Envoy would refuse in an answer is as before in the pieces that are at fault (mend.go).
//  4. Made.Of is asked again. A failed result is left out or stood in for by the last good one, and the new snapshot is what proxies get.
//  5. Made.Sweep forgets the results that no snapshot stands on.
//
// A patch whose session ends leaves calls open; Patcher.Joined has them sent again. When the rows
// that it reads change, Patcher.Forget makes everything be asked anew. testdata has such
// conversations as text.
package patch
