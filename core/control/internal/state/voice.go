package state

// Voice is who speaks for a connection where what it says counts for others. The zero Voice has no
// vote: the connection is in plain text, or its identities are of no namespace.
type Voice struct {
	// Identity is the caller's, verified, and Namespace that of the proxies for which it speaks.
	Identity, Namespace string
	// Operator: Namespace is that of those who run the control plane.
	Operator bool
}

// Votes reports whether there is anybody.
func (v Voice) Votes() bool { return v.Namespace != "" }

// Regular reports whether a connection has accepted a push of a type that was sent before a
// revision: who has not, is nobody yet whose refusal of that one counts for others.
func (conn *Connection) Regular(typeURL string, before uint64) bool {
	last := conn.Outcomes[typeURL]
	return last.First > 0 && last.First < before
}
