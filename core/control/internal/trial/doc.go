// Package trial is about plugins beside those that are served under their names: what may take
// another's place, and what was replaced and is kept warm. It is pure: what happens and the time go
// in, and what to do comes out; it starts no goroutine, reads no clock and sends nothing.
// core/control does that for it (internal/members/trials.go).
//
// The life of a trial:
//
//  1. A Shadow (shadow.go) takes what the new plugin says, and where it places connections, as if
//     it was served.
//  2. Barriers (barrier.go) finds a moment at which it and the served plugin have said all about
//     the same rows.
//  3. A Comparison (compare.go) of the two is a guard.Difference, and the resources that mean the
//     same for both.
//  4. If somebody decides so the new plugin takes the place of the old, which has a Shadow from
//     then on, so that it can come back.
//  5. Refusals (refusals.go) counts the proxies that refuse what the switch has changed for them,
//     until there are too many or it is clear that there won't be.
//
// Connections are a type parameter: so nothing can be sent to them from here. testdata has such
// trials as text.
package trial
