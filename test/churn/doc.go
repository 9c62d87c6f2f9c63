// Package churn measures the control plane, and beside it a living istiod, on a real API server
// whose pods are replaced all the time: what it takes of the machine and of the API server, and how
// long an address takes from the write of its slice to the last sidecar. As a test it is small and
// reports whether all this works; `make bench-kube` is the whole of it. docs/performance.md says
// what the figures mean.
package churn
