// Package guard says what would change by what plugins say, whether that looks like an accident,
// and holds it then. It is pure: what happens and the time go in, and what to do comes out; it
// starts no goroutine, reads no clock and sends nothing. core/control does that for it
// (core/control/internal/serving/losses.go).
//
// A Difference (difference.go) is what rows and resources would be others if one plugin took
// another's place; Guard (guard.go) judges it.
//
// The life of a row that goes, and of what proxies have of it:
//
//  1. Holds.Judge (holds.go) sees what connections are about to be shown. What of that they would
//     lose says Losses (loss.go), which rows led to it causesOf (causes.go), and whether it is only
//     the last of many little things marks (drip.go).
//  2. What is not too much is shown, and Holds.AllSeen notes it.
//  3. Otherwise rows are taken back: the environment keeps them aside and has the earlier ones, in
//     a revision of their own. Where no row led to it the connections that would lose are frozen:
//     they keep what they have.
//  4. A Hold ends when the plugin says something else, or nothing is lost by it any more
//     (Holds.Over, Holds.AllSeen), or when somebody lets it through (Holds.Approve,
//     Holds.ApproveNext).
//
// Connections are a type parameter, Stream: so nothing can be sent to them from here. testdata has
// such losses as text.
package guard
