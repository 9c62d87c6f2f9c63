//go:build race

package plugintest

// usualMany is how many endpoints are many where nobody says, usualPatience a target's Patience.
// With the race detector all takes several times as long, on a busy machine above all.
const usualMany, usualPatience = 10_000, 3
