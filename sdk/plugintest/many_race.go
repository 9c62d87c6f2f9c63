//go:build race

package plugintest

// usual is how many endpoints are many where nobody says. With the race detector each endpoint
// takes several times as long.
const usual = 10_000
