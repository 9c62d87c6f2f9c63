//go:build !race

package plugintest

// usualMany is how many endpoints are many where nobody says, usualPatience a target's Patience.
const usualMany, usualPatience = 100_000, 1
