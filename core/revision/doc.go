// Package revision leads a revision through the plugins that make something of it. It is pure: what
// happens and the time go in, and what to do comes out; it starts no goroutine, reads no clock and
// sends nothing. core/control does that for it
// (core/control/internal/pipeline/pipeline.go).
//
// The life of a revision:
//
//  1. Begin (flight.go) begins it when rows are committed. Revisions of endpoints alone wait for
//     a Pacer (pacer.go) before that.
//  2. Flight.Next says what is to be done as soon as nobody is waited for: it is given to those who
//     derive rows from rows, one level after the other, and then to generators. Flight.Give and
//     Flight.Away say who takes part, and is waited for.
//  3. Flight.Done notes that a plugin has said all about it. Who takes too long is not waited for
//     after Flight.Until: Flight.GiveUp says who that is, and the revision is partial.
//  4. Then it is served, and shown once patches have seen all of it.
//
// testdata has such revisions as text.
package revision
