package main

import "fmt"

// changes of one kind for which CPU is given, as a sum: it comes in ticks of 10 ms. Where fewer
// were made, the sum is what so many would cost.
const changes = 20

// load is a mesh and the sidecars that see it.
type load struct {
	mesh     string
	services int
	sidecars int
	mode     string
}

func (l load) name() string { return fmt.Sprintf("%s-%d-%s", l.mesh, l.sidecars, l.mode) }

// loads in the order in which they are measured.
func loads(c config) []load {
	all := []load{
		{"W1", 100, 100, "sotw"}, {"W1", 100, 100, "delta"},
		{"W2", 1000, 100, "sotw"}, {"W2", 1000, 100, "delta"},
		{"W2", 1000, 500, "sotw"}, {"W2", 1000, 500, "delta"},
	}
	if c.quick {
		all = []load{all[0], all[4]}
	}
	if c.only == "" {
		return all
	}
	for _, l := range all {
		if l.name() == c.only {
			return []load{l}
		}
	}
	return nil
}

// edit is one kind of change: how each server is told, and what a sidecar then gets.
type edit struct {
	name     string
	expect   string
	mesh     string   // command on the control plane's mesh
	floor    []string // TYPE:RESOURCES that the floor writes in state of the world; 0 means all of them
	delta    []string // and in delta
	peerKind string   // what go-control-plane's server calls it
}

// edits in an order in which each finds what it needs: what is taken away was added before. The
// service whose endpoint changes has two subsets, so three load assignments change.
func edits() []edit {
	return []edit{
		{"endpoint", "eds:{ip}", "meshgen -touch endpoint -marker {ip}", []string{"eds:3"}, []string{"eds:3"}, "endpoint"},
		{"virtual service", "rds:{marker}", "meshgen -touch route -marker {marker}", []string{"rds:0"}, []string{"rds:0"}, "route"},
		{"service more", "cds:{marker}", "meshgen -touch service -marker {marker}",
			[]string{"cds:0", "eds:1", "rds:0"}, []string{"cds:1", "eds:1", "rds:0"}, "service"},
		{"service less", "rds:", "bench remove", []string{"rds:0", "cds:0"}, []string{"rds:0", "cds:1"}, ""},
		{"endpoint beside a commit", "eds:{ip}", "meshgen -touch service -marker {marker}; meshgen -touch endpoint -marker {ip}", nil, nil, ""},
	}
}

// repeats returns how often a server makes each change in one round: go-control-plane's server half
// as often, for it takes longest and has no goals.
func repeats(c config, server string) int {
	n := c.repeats
	if c.quick {
		n = 2
	}
	if server == peer {
		return (n + 1) / 2
	}
	return n
}
