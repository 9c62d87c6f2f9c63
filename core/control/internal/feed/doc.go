// Package feed says what plugins are sent of the tables that they read. It is pure: what happens
// goes in, and rows come out; it starts no goroutine, reads no clock and sends nothing.
// core/control does that for it (internal/pipeline/feeder.go).
//
// The life of a change: Feed.Changed (feed.go) notes it for each session that reads the row;
// Feed.Drain hands out what a session was not sent yet, all changes of a row at once. Suspects
// (suspects.go) has what changed since a plugin was last done: if it dies over that again and
// again, it gets these rows as they were before.
//
// testdata has such feeds as text.
package feed
