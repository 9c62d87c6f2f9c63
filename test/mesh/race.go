//go:build race

package mesh

const race = true
