// Package conformance plays conversations of xDS clients with the real server, over real gRPC:
// scenarios in testdata, one file for each area, that read as documentation and name the part of
// the protocol's document that they come from.
package conformance
