//go:build race

package istio

// lawHistoriesOften is how many histories go test runs. With the race detector, which has little to
// see where all is done by one goroutine, each takes six times as long.
const lawHistoriesOften = 2
