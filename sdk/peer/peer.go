// Package peer says who is at the other end of a Unix socket, as the kernel knows it.
package peer

// Peer is a process. Of the end that listens it is the one that called listen, of the end that
// connected the one that called connect.
type Peer struct {
	// PID is 0 for a process in another PID namespace, which this one doesn't see.
	PID, UID int
}
