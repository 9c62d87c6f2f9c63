//go:build race

package mesh

// Race reports whether programs are built with the race detector.
const Race = true
