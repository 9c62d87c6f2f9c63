package environment

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// served are the payloads of a table, by key.
func served(e *Environment, table string) map[string]string {
	out := map[string]string{}
	for key, r := range e.Committed.Rows(table, false) {
		out[key] = string(r.Payload)
	}
	return out
}

// says has a shard say of services how many endpoints they have, at addresses of its own; -1: it
// has the service no more.
func says(e *Environment, s *Shard, services map[string]int) {
	tables := map[string]map[string]*pb.Row{Services: {}, Endpoints: {}}
	for service, n := range services {
		if n < 0 {
			continue
		}
		tables[Services][service] = row(service, s.Name)
		for i := range n {
			key := fmt.Sprintf("%s/http/%s-%d:80", service, s.Name, i)
			tables[Endpoints][key] = row(key, s.Name)
		}
	}
	e.Pending.Replace(s, tables)
}

// endpointsOf are the shards whose endpoints of a service are served.
func endpointsOf(e *Environment, service string) []string {
	var out []string
	for key, r := range e.Committed.Rows(Endpoints, false) {
		if ServiceOf(key) == service {
			out = append(out, r.Shard)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestTheHighestPriorityServes(t *testing.T) {
	const service = "shop/reviews.example"
	e, consul, kube := New(), &Shard{Name: "consul", Order: 1, Priority: 10}, &Shard{Name: "kube", Order: 0}
	check := func(what, attributes string, endpoints ...string) {
		t.Helper()
		if r := e.Committed.Row(Name{Services, service}, false); attributes != "" && (r == nil || string(r.Payload) != attributes) {
			t.Errorf("%s: the service is %v, want %s's", what, r, attributes)
		}
		if got := endpointsOf(e, service); !slices.Equal(got, endpoints) {
			t.Errorf("%s: endpoints of %v, want %v", what, got, endpoints)
		}
		if n := e.Tally.EndpointsOf(service); (n == 0) != (len(endpoints) == 0) {
			t.Errorf("%s: it is said to have %d endpoints", what, n)
		}
	}
	say := func(s *Shard, n int) Changes {
		says(e, s, map[string]int{service: n})
		return e.Pending.Commit(false, nil)
	}
	say(kube, 2)
	check("one has it", "kube", "kube")
	say(consul, 0)
	check("the preferred one has the service, and no endpoints yet", "consul", "kube")
	if changes := say(consul, 3); len(changes[Endpoints]) != 5 {
		t.Errorf("three came and two were hidden: changes of %v", keys(changes))
	}
	check("the preferred one has it", "consul", "consul")
	for h := range e.Precedence.HiddenOf(kube) {
		if h.By != consul || h.Why != Lower {
			t.Errorf("%s is hidden by %v: %s", h.Key, h.By, h.Why)
		}
	}
	if n := e.Precedence.Hidden(); n != 3 {
		t.Errorf("%d are hidden, want 1 service and 2 endpoints", n)
	}
	say(kube, 4)
	check("the other changed", "consul", "consul")
	say(consul, -1)
	check("the preferred one has it no more", "kube", "kube")
	if n := e.Precedence.Hidden(); n != 0 {
		t.Errorf("%d are hidden", n)
	}
	say(consul, 1)
	e.Precedence.SetAside(consul, true)
	check("the preferred one's source is away for too long", "kube", "kube")
	say(consul, 2)
	check("what it says meanwhile is not served", "kube", "kube")
	e.Precedence.SetAside(consul, false)
	check("it is back", "consul", "consul")
	if n := e.Tally.EndpointsOf(service); n != 2 {
		t.Errorf("%d endpoints, want those that it said while it was away", n)
	}
	e.Precedence.Prioritize(consul, 0)
	check("all have the same priority", "kube", "consul", "kube")
	e.Precedence.Prioritize(kube, 20)
	check("the other is preferred", "kube", "kube")
}

// TestEndpointsAreNeverEmptiedByOrder: whatever comes first of a service and its endpoints, and
// whatever is committed apart, no set between is empty.
func TestEndpointsAreNeverEmptiedByOrder(t *testing.T) {
	const service = "shop/reviews.example"
	service1, endpoint := row(service, "consul"), row(service+"/http/10.0.0.1:80", "consul")
	for _, first := range []string{Services, Endpoints} {
		e, consul, kube := New(), &Shard{Name: "consul", Order: 1, Priority: 10}, &Shard{Name: "kube"}
		says(e, kube, map[string]int{service: 2})
		e.Pending.Commit(false, nil)
		steps := []struct {
			table string
			row   *pb.Row
		}{{Services, service1}, {Endpoints, endpoint}}
		if first == Endpoints {
			slices.Reverse(steps)
		}
		for _, gone := range []bool{false, true} {
			for _, s := range steps {
				r := *s.row
				if gone {
					e.Pending.Update(consul, s.table, nil, []string{r.Key})
				} else {
					e.Pending.Update(consul, s.table, []*pb.Row{&r}, nil)
				}
				e.Pending.Commit(false, nil)
				if e.Tally.EndpointsOf(service) == 0 || len(endpointsOf(e, service)) == 0 {
					t.Errorf("%s first, gone %v: no endpoints after %s", first, gone, s.table)
				}
			}
		}
	}
}

// oracle says what is served, from nothing but what shards have.
func oracle(shards []*Shard, has map[*Shard]map[Name]string) (out map[Name]string, hidden int) {
	ranks := map[string]int{}
	for _, s := range shards {
		if s.aside {
			continue
		}
		for n := range has[s] {
			if n.Table != Endpoints {
				continue
			}
			service := ServiceOf(n.Key)
			rank, is := ranks[service]
			if _, own := has[s][Name{Services, service}]; own && (!is || s.Priority > rank) {
				ranks[service] = s.Priority
			}
		}
	}
	order := slices.SortedFunc(slices.Values(shards), func(a, b *Shard) int { return a.compare(b) })
	out = map[Name]string{}
	for _, s := range order {
		for n, text := range has[s] {
			rank, ranked := ranks[ServiceOf(n.Key)]
			_, taken := out[n]
			if taken || s.aside || ranked && ofService(n.Table) && s.Priority < rank {
				hidden++
				continue
			}
			out[n] = text
		}
	}
	return out, hidden
}

// all is what is served.
func all(e *Environment) map[Name]string {
	out := map[Name]string{}
	for _, table := range e.Committed.Tables() {
		for key, text := range served(e, table) {
			out[Name{table, key}] = text
		}
	}
	return out
}

// TestRandomMerging takes shards of any priorities through random changes: what is served is what
// an oracle says of the whole, what is said to change is what does, and the counts are those of a
// count.
func TestRandomMerging(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		e := New()
		e.Unseen.Seen()
		var shards []*Shard
		has := map[*Shard]map[Name]string{}
		for i := range 4 {
			s := &Shard{Name: fmt.Sprint("s", i), Order: i, Priority: []int{0, 0, 5, -5}[r.IntN(4)], Derived: i == 3}
			shards = append(shards, s)
			has[s] = map[Name]string{}
		}
		mirror, seen := map[Name]string{}, map[Name]string{}
		follow := func(changes Changes) {
			for table, of := range changes {
				for key, change := range of {
					n := Name{table, key}
					if got := string(payload(change.Before)); got != mirror[n] {
						t.Fatalf("seed %d: %v is said to have been %q, and was %q", seed, n, got, mirror[n])
					}
					if delete(mirror, n); e.Committed.Row(n, false) != nil {
						mirror[n] = string(e.Committed.Row(n, false).Payload)
					}
				}
			}
		}
		for range 150 {
			s := shards[r.IntN(len(shards))]
			switch r.IntN(12) {
			case 0:
				follow(e.Precedence.Prioritize(s, r.IntN(3)*5-5))
			case 1:
				follow(e.Precedence.SetAside(s, r.IntN(2) == 0))
			case 2:
				order := r.Perm(len(shards))
				places := map[*Shard]int{}
				for i, s := range shards {
					places[s] = order[i]
				}
				follow(e.Precedence.Reorder(places))
			case 3:
				clear(seen)
				maps.Copy(seen, mirror)
				e.Unseen.Seen()
			default:
				n := Name{Services, fmt.Sprint("ns/h", r.IntN(2))}
				if table := r.IntN(4); table == 1 {
					n = Name{ClusterServices, n.Key + "/east"}
				} else if table > 1 {
					n = Name{Endpoints, n.Key + fmt.Sprintf("/http/10.0.0.%d:80", r.IntN(3))}
				}
				if r.IntN(3) == 0 {
					e.Pending.Update(s, n.Table, nil, []string{n.Key})
					delete(has[s], n)
				} else {
					text := fmt.Sprint(s.Name, r.IntN(2))
					e.Pending.Update(s, n.Table, []*pb.Row{row(n.Key, text)}, nil)
					has[s][n] = text
				}
				follow(e.Pending.Commit(false, nil))
			}
			want, hidden := oracle(shards, has)
			if d := cmp.Diff(want, all(e)); d != "" {
				t.Fatalf("seed %d: what is served (-want +got):\n%s", seed, d)
			}
			if d := cmp.Diff(want, mirror); d != "" {
				t.Fatalf("seed %d: what changes lead to (-want +got):\n%s", seed, d)
			}
			counts(t, e, shards, want, hidden)
		}
	}
}

func counts(t *testing.T, e *Environment, shards []*Shard, want map[Name]string, hidden int) {
	t.Helper()
	if e.Precedence.Hidden() != hidden {
		t.Fatalf("%d are hidden, want %d", e.Precedence.Hidden(), hidden)
	}
	listed, endpoints := 0, map[string]int{}
	for _, s := range shards {
		for h := range e.Precedence.HiddenOf(s) {
			listed++
			if s.aside != (h.Why == Away) || h.Why != Away && h.By == nil || h.Why == Lower && h.By.Priority <= s.Priority {
				t.Fatalf("%v of %s is hidden by %v: %s", h.Name, s.Name, h.By, h.Why)
			}
		}
	}
	if listed != hidden {
		t.Fatalf("%d hidden rows are listed, want %d", listed, hidden)
	}
	total := 0
	for n := range want {
		if n.Table == Endpoints {
			endpoints[ServiceOf(n.Key)]++
			total++
		}
	}
	if e.Committed.Len(Endpoints) != total || e.Tally.WithEndpoints() != len(endpoints) {
		t.Fatalf("%d endpoints of %d services, want %d of %d", e.Committed.Len(Endpoints), e.Tally.WithEndpoints(), total, len(endpoints))
	}
	for service, n := range endpoints {
		if e.Tally.EndpointsOf(service) != n {
			t.Fatalf("%s has %d endpoints, want %d", service, e.Tally.EndpointsOf(service), n)
		}
	}
}

// TestHadWithRanks: what was there before, and what was revealed, add up to what there is,
// whoever's endpoints were served.
func TestHadWithRanks(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		e := New()
		shards := []*Shard{{Name: "a", Order: 0}, {Name: "b", Order: 1, Priority: 5}, {Name: "c", Order: 2, Priority: 5}}
		e.Unseen.Seen()
		for _, s := range shards {
			says(e, s, map[string]int{"ns/x": r.IntN(3) - 1, "ns/y": r.IntN(3) - 1})
		}
		e.Pending.Commit(false, nil)
		e.Unseen.Seen()
		before := len(served(e, Endpoints))
		for range 3 {
			says(e, shards[r.IntN(3)], map[string]int{"ns/x": r.IntN(4) - 1, "ns/y": r.IntN(4) - 1})
			e.Pending.Commit(false, nil)
		}
		now, seen := before+e.Unseen.Revealed(), map[Name]bool{}
		for u := range e.Unseen.Rows() {
			if u.Table != Endpoints || seen[u.Name] {
				continue
			}
			seen[u.Name] = true
			now += byBool(e.Committed.Row(u.Name, false) != nil) - byBool(e.Unseen.Had(u.Name))
		}
		if got := len(served(e, Endpoints)); now != got {
			t.Fatalf("seed %d: %d endpoints by what changed, %d are served", seed, now, got)
		}
	}
}

// twoRegistries have the same services, of 10 endpoints each; the first one is preferred.
func twoRegistries(n int) (e *Environment, preferred *Shard) {
	e, consul, kube := New(), &Shard{Name: "consul", Priority: 10}, &Shard{Name: "kube", Order: 1}
	services := map[string]int{}
	for i := range n {
		services[fmt.Sprintf("shop/s%d.example", i)] = 10
	}
	says(e, consul, services)
	says(e, kube, services)
	e.Pending.Commit(false, nil)
	return e, consul
}

// BenchmarkFallThrough: the preferred registry loses one of 1,000 services of 10 endpoints, and has
// it again.
func BenchmarkFallThrough(b *testing.B) {
	e, consul := twoRegistries(1000)
	const one = "shop/s7.example"
	var there []*pb.Row
	var gone []string
	for i := range 10 {
		key := fmt.Sprintf("%s/http/consul-%d:80", one, i)
		there, gone = append(there, row(key, "consul")), append(gone, key)
	}
	for b.Loop() {
		e.Pending.Update(consul, Endpoints, nil, gone)
		if n := len(e.Pending.Commit(false, nil)[Endpoints]); n != 20 {
			b.Fatalf("%d changes", n)
		}
		e.Pending.Update(consul, Endpoints, there, nil)
		e.Pending.Commit(false, nil)
	}
}
