// Package history keeps what proxies were served at the last revisions, so that it can be looked
// at, compared, and served again, whatever has become of the plugins that made it.
//
// Log is the history itself: what is so now, and for each revision what undoes it. Resources are
// kept once, by name and version. Image is what was served at one revision, with which a pin
// serves. Stage is a stage of pushes that outlives a restart. File is the same on disk. History
// takes notes of what connections are shown, off the path of pushes, and writes them down.
package history
