// Package serving is what connections are served: which plugins serve them (Streams), which views
// they are in and what is wanted of these (Placer), what patches make of them (Patches), what would
// be lost (Losses), and what connections see (Screen). It has no clock, lock or goroutine: who
// drives it says what time it is, in state.Clock.
package serving
