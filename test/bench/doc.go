// Command bench measures the control plane beside a server on go-control-plane's linear caches and
// beside the floor, a server that only writes bytes that were encoded before. docs/performance.md
// says what the figures mean.
//
// A round is one server, started anew, under one load: all sidecars connect twice, then the mesh
// changes. Servers take turns, so that what disturbs the machine disturbs all of them; figures are
// medians over the rounds, and CPU of changes is the sum over 20.
package main
