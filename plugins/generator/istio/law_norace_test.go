//go:build !race

package istio

// lawHistoriesOften is how many histories go test runs.
const lawHistoriesOften = 20
