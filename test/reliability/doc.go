// Package reliability shows what strangers, accidents and misbehaving plugins can do to the whole:
// the program as users run it, with a real Envoy under steady traffic and well-behaved xDS clients
// that wait for edits. Each case is an abuse with a promise. `go test` asserts what can be counted
// (failed requests, edits that never come, plugins that are restarted, memory); `make reliability`
// runs all of them, looks at delays, too, and writes the table of docs/reliability.md.
package reliability
