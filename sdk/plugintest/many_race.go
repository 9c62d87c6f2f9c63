//go:build race

package plugintest

// many is Suite.Many where it isn't said. With the race detector each endpoint takes several times
// as long; so many still use up what credit a plugin has.
const many = 30_000
