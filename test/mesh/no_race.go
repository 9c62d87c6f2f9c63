//go:build !race

package mesh

const race = false
