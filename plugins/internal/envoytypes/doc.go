// Package envoytypes links the messages of Envoy's whole API, so that whatever a file names by its
// `@type` can be read. Most import it for that effect alone. It costs a process some 3 MiB of
// memory of its own, and the binary some 25 MB.
package envoytypes
