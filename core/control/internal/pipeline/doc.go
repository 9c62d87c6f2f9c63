// Package pipeline leads rows to what connections are served: it takes them from plugins (Intake),
// commits them, leads each revision through the stages (Pipeline), sends plugins what they read
// (Feeder), wakes those that start on demand (Sleepers), and takes what patches answer (Results)
// and requests for objects where they are kept (Writes). It has no clock, lock or goroutine: who
// drives it says what time it is, in state.Clock.
package pipeline
