// Package beside asks a living istiod (test/peer) and Coxswain the same about identity, both on one
// API server and with one CA: who is calling, who gets a certificate with which names, who gets
// which secrets.
//
// A row of the table is a question, asked of both over gRPC as clients ask it, and what became of
// it: the status code and what came. `make identity-live` prints the table. Where the answers
// differ the row must say both of them, and which row of docs/differences.md says why.
package beside
