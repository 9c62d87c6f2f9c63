// Package proto is the contract between the core and plugins: the messages of a session, as
// session.proto and model.proto declare them, with code that reads and writes them.
package proto
