//go:build race

package plugintest

// many is Suite.Many where it isn't said. With the race detector each endpoint takes several times
// as long.
const many = 10_000
