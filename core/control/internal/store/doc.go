// Package store sends requests of plugins for objects on to the one plugin that keeps them, and the
// answers back. It is pure: what happens and the time go in, and what to send comes out; it starts
// no goroutine, reads no clock and sends nothing. core/control does that for it
// (internal/pipeline/writes.go). It looks into neither requests nor answers.
//
// The life of a request:
//
//  1. Requests.Ask (requests.go) takes it. If it can't be sent on, Route.refuse (route.go) says
//     why, and that is its answer.
//  2. Otherwise it gets a number of its own, and the writer owes an answer: Requests.Answered, or
//     why there is none (Requests.Undelivered, Requests.Late, Requests.Left).
//  3. The asker's answer is one of Requests.Answers, and counts until it was handed on
//     (Requests.Sent): who leaves too many unread is blamed.
//
// testdata has such requests as text.
package store
