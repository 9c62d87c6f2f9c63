//go:build !race

package plugintest

// many is Suite.Many where it isn't said.
const many = 100_000
