//go:build !race

package plugintest

// usual is how many endpoints are many where nobody says.
const usual = 100_000
