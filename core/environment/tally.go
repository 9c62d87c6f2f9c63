package environment

import "maps"

// Tally counts rows: those that shards have, and the endpoints that are served.
type Tally struct {
	// rows are of shards by table, backed of shards' endpoints by service, endpoints of those that
	// are served by service, and served their sum.
	rows      map[*Shard]map[string]int
	backed    map[*Shard]map[string]int
	endpoints map[string]int
	served    int
}

func newTally() *Tally {
	return &Tally{rows: map[*Shard]map[string]int{}, backed: map[*Shard]map[string]int{}, endpoints: map[string]int{}}
}

// count keeps how many rows each shard has of each table, and how many endpoints of each service.
func (t *Tally) count(s *Shard, n Name, had, has bool) {
	if had == has {
		return
	}
	by := 1
	if had {
		by = -1
	}
	if t.rows[s] == nil {
		t.rows[s] = map[string]int{}
	}
	t.rows[s][n.Table] += by
	if n.Table != Endpoints {
		return
	}
	if t.backed[s] == nil {
		t.backed[s] = map[string]int{}
	}
	service := ServiceOf(n.Key)
	if t.backed[s][service] += by; t.backed[s][service] == 0 {
		delete(t.backed[s], service)
	}
}

// countEndpoints keeps how many endpoints of each service are served.
func (t *Tally) countEndpoints(n Name, had, has bool) {
	if n.Table != Endpoints || had == has {
		return
	}
	service := ServiceOf(n.Key)
	t.served += byBool(has) - byBool(had)
	if has {
		t.endpoints[service]++
	} else if t.endpoints[service]--; t.endpoints[service] == 0 {
		delete(t.endpoints, service)
	}
}

func byBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// LenOf returns how many rows a shard has, by table.
func (t *Tally) LenOf(s *Shard) map[string]int { return maps.Clone(t.rows[s]) }

// WithEndpointsOf is how many services a shard has endpoints of.
func (t *Tally) WithEndpointsOf(s *Shard) int { return len(t.backed[s]) }

// EndpointsOf is how many endpoints of a service are served.
func (t *Tally) EndpointsOf(service string) int { return t.endpoints[service] }

// WithEndpoints is how many services have endpoints.
func (t *Tally) WithEndpoints() int { return len(t.endpoints) }
