// Package state is what the core knows of plugins, their sessions, connections, and how far
// revisions are: who is there, and what each has said and been told. It has no clock, lock or
// goroutine; who drives it says what time it is (Clock).
package state
