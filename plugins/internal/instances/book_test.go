package instances

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func named() Naming {
	return Naming{
		Source: "test", Registry: "Test", Namespace: "default", Host: func(service string) string { return service + ".test" },
		Reasons: map[Reason]Meaning{"odd": {Effect: Partly, Text: "are odd"}, "old": {Effect: Kept, Text: "are old"}},
	}
}

func at(address string, port uint32, with ...func(*Member)) Member {
	m := Member{Of: address, Port: Port{Number: port, Protocol: "HTTP"}, Endpoint: sdk.Endpoint{Address: address, Port: port, Weight: 1}}
	for _, w := range with {
		w(&m)
	}
	return m
}

// keys are those of changes, each after + or -.
func keys(c Changes) (all []string) {
	for _, table := range Tables() {
		for _, r := range c.Upserts[table] {
			all = append(all, "+"+r.Key)
		}
		for _, key := range c.Deletes[table] {
			all = append(all, "-"+key)
		}
	}
	slices.Sort(all)
	return all
}

func expect(t *testing.T, b *Book, want ...string) {
	t.Helper()
	if got := keys(b.Changes()); !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestBook: what differs is published, and nothing else.
func TestBook(t *testing.T) {
	b := New(named())
	b.Set("Web", "a", []Member{at("10.0.0.1", 80)}, nil)
	b.Set("web", "b", []Member{at("10.0.0.2", 80)}, Tally{"odd": {1, "x"}})
	expect(t, b, "+default/web.test", "+default/web.test/http-80/10.0.0.1:80", "+default/web.test/http-80/10.0.0.2:80", "+test:web:odd")
	b.Set("web", "a", []Member{at("10.0.0.1", 80)}, nil)
	expect(t, b)
	b.Set("web", "a", []Member{at("10.0.0.1", 81)}, nil)
	expect(t, b, "+default/web.test", "+default/web.test/http-81/10.0.0.1:81", "-default/web.test/http-80/10.0.0.1:80")
	if got := b.Members("WEB", "a"); len(got) != 1 || got[0].Port.Number != 81 {
		t.Errorf("%v", got)
	}
	b.Set("web", "b", nil, Tally{"old": {2, "y"}})
	expect(t, b, "+default/web.test", "+test:web:old", "-default/web.test/http-80/10.0.0.2:80", "-test:web:odd")
	b.Set("web", "a", nil, nil)
	expect(t, b, "-default/web.test", "-default/web.test/http-81/10.0.0.1:81")
	b.Set("web", "b", nil, nil)
	expect(t, b, "-test:web:old")
	if b.Services() != 0 || len(b.shown) != 0 || len(b.lost) != 0 {
		t.Errorf("something is left: %+v", b)
	}
}

// TestAssemble: what several instances make together, and what of it is lost.
func TestAssemble(t *testing.T) {
	ill := func(m *Member) { m.Endpoint.Health, m.Of = pb.EndpointHealthUnhealthy, "ill" }
	for name, c := range map[string]struct {
		all        []Member
		ports      string
		endpoints  int
		lost       Tally
		resolution pb.ServiceResolution
	}{
		"the healthiest at an address": {
			[]Member{at("10.0.0.1", 80, ill), at("10.0.0.1", 80)}, "http-80", 1, Tally{Same: {1, "ill"}},
			pb.ServiceResolutionStatic,
		},
		"names among addresses": {[]Member{at("10.0.0.1", 80), at("a.example", 80)}, "http-80", 1, Tally{Name: {1, "a.example"}}, pb.ServiceResolutionStatic},
		"names alone":           {[]Member{at("b.example", 80), at("a.example", 80)}, "http-80", 2, Tally{}, pb.ServiceResolutionDns},
		"protocols that differ": {
			[]Member{at("10.0.0.1", 80), at("10.0.0.2", 80), at("10.0.0.3", 80, func(m *Member) { m.Port.Protocol = "GRPC" })},
			"http-80", 3,
			Tally{Protocol: {1, "80"}}, pb.ServiceResolutionStatic,
		},
		"names of ports": {[]Member{
			at("10.0.0.1", 80, func(m *Member) { m.Port.Name = "x" }),
			at("10.0.0.1", 81, func(m *Member) { m.Port = Port{81, "x", ""} }),
			at("10.0.0.1", 82, func(m *Member) { m.Port.Protocol = "" }),
		},
			"x x-81 auto-82", 3, Tally{}, pb.ServiceResolutionStatic},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(named())
			for i, m := range c.all {
				b.Set("s", fmt.Sprint(i), []Member{m}, nil)
			}
			rows := b.Changes().Upserts
			s, err := sdk.ServiceOf(rows[state.Services][0])
			if err != nil {
				t.Fatal(err)
			}
			var ports []string
			for _, p := range s.Ports {
				ports = append(ports, p.Name)
			}
			lost, endpoints := b.Lost()["s"], rows[state.Endpoints]
			if lost == nil {
				lost = Tally{}
			}
			if got := strings.Join(ports, " "); got != c.ports || len(endpoints) != c.endpoints ||
				fmt.Sprint(lost) != fmt.Sprint(c.lost) || s.Resolution != c.resolution {
				t.Errorf("ports %s, %d endpoints, lost %v, resolution %v", got, len(endpoints), lost, s.Resolution)
			}
		})
	}
}

// TestWeights: one without a weight is sent nothing as long as there is another one.
func TestWeights(t *testing.T) {
	weight := func(n uint32) func(*Member) { return func(m *Member) { m.Endpoint.Weight = n } }
	b := New(named())
	health := map[string]pb.EndpointHealth{}
	expect := func(what string, first, second pb.EndpointHealth) {
		t.Helper()
		for _, r := range b.Changes().Upserts[state.Endpoints] {
			e, err := sdk.EndpointOf(r)
			if err != nil || e.Weight == 0 {
				t.Fatal(e, err)
			}
			health[e.Address] = e.Health
		}
		if health["10.0.0.1"] != first || health["10.0.0.2"] != second {
			t.Errorf("%s: %v", what, health)
		}
	}
	const well, ill = pb.EndpointHealthHealthy, pb.EndpointHealthUnhealthy
	b.Set("s", "a", []Member{at("10.0.0.1", 80, weight(0))}, nil)
	b.Set("s", "b", []Member{at("10.0.0.2", 80, weight(0))}, nil)
	expect("none has one", well, well)
	b.Set("s", "b", []Member{at("10.0.0.2", 80, weight(5))}, nil)
	expect("another one has", ill, well)
	b.Set("s", "b", []Member{at("10.0.0.2", 80, weight(5), func(m *Member) { m.Endpoint.Health = ill })}, nil)
	expect("and is ill", well, ill)
	b.Set("s", "b", []Member{at("10.0.0.2", 81, weight(5))}, nil)
	expect("and is of another port", well, well)
}

// TestSorts: what says the same once more is no loss.
func TestSorts(t *testing.T) {
	of := func(name string, sort int, stamp int64) []Member {
		return []Member{at("10.0.0.1", 80, func(m *Member) { m.Of, m.Sort, m.Stamp, m.Lost = name, sort, stamp, Tally{"odd": {1, name}} })}
	}
	b := New(named())
	b.Set("s", "a", of("old", 0, 1), nil)
	b.Set("s", "b", of("again", 1, 9), nil)
	b.Changes()
	if got := fmt.Sprint(b.Lost()["s"]); got != "map[odd:{1 old}]" {
		t.Error(got)
	}
	b.Set("s", "c", of("new", 0, 2), nil)
	b.Changes()
	if got := fmt.Sprint(b.Lost()["s"]); got != "map[odd:{1 new} same:{1 old}]" {
		t.Error(got)
	}
}

// TestSame: no field of a member is forgotten.
func TestSame(t *testing.T) {
	var check func(v reflect.Value, of func(*Member) reflect.Value)
	check = func(v reflect.Value, of func(*Member) reflect.Value) {
		for i := range v.NumField() {
			a, b := at("10.0.0.1", 80), at("10.0.0.1", 80)
			if !same(a, b) {
				t.Fatal("they are the same")
			}
			f := of(&b).Field(i)
			switch f.Kind() {
			case reflect.Struct:
				check(f, func(m *Member) reflect.Value { return of(m).Field(i) })
				continue
			case reflect.String:
				f.SetString("x")
			case reflect.Uint32:
				f.SetUint(77)
			case reflect.Int, reflect.Int32, reflect.Int64:
				f.SetInt(77)
			case reflect.Bool:
				f.SetBool(!f.Bool())
			case reflect.Map:
				f.Set(reflect.MakeMap(f.Type()))
				f.SetMapIndex(reflect.New(f.Type().Key()).Elem(), reflect.New(f.Type().Elem()).Elem())
			case reflect.Slice:
				f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			default:
				t.Fatalf("%s is %s", v.Type().Field(i).Name, f.Kind())
			}
			if same(a, b) {
				t.Errorf("%s is forgotten", v.Type().Field(i).Name)
			}
		}
	}
	m := at("10.0.0.1", 80)
	check(reflect.ValueOf(&m).Elem(), func(m *Member) reflect.Value { return reflect.ValueOf(m).Elem() })
}

// table is what was published of a book's changes.
type table map[string]string

func (p table) take(t *testing.T, c Changes) {
	t.Helper()
	for name, rows := range c.Upserts {
		for _, r := range rows {
			if key := name + " " + r.Key; p[key] == string(r.Payload) {
				t.Fatalf("%s is published once more", key)
			} else {
				p[key] = string(r.Payload)
			}
		}
	}
	for name, keys := range c.Deletes {
		for _, key := range keys {
			if key = name + " " + key; p[key] == "" {
				t.Fatalf("%s isn't there and is taken away", key)
			} else {
				delete(p, key)
			}
		}
	}
}

// TestHistories: whatever comes and goes, what was published is what there is, made at once.
func TestHistories(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		pick := func(words ...string) string { return words[r.IntN(len(words))] }
		random := func(instance string) (all []Member, lost Tally) {
			for i := range r.IntN(3) {
				address := pick("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
				if r.IntN(8) == 0 {
					address = pick("a.example", "b.example")
				}
				all = append(all, at(address, uint32(80+r.IntN(3)), func(m *Member) {
					m.Of, m.External, m.Sort, m.Stamp, m.Endpoint.Weight = fmt.Sprint(instance, i), r.IntN(9) == 0, r.IntN(2), r.Int64N(2), uint32(r.IntN(3))
					m.Port.Name, m.Port.Protocol = pick("", "", "x", "y"), pick("HTTP", "GRPC", "")
					m.Endpoint.Port, m.Endpoint.Health = m.Endpoint.Port+uint32(r.IntN(2)), pb.EndpointHealth(r.IntN(2))
					if r.IntN(4) == 0 {
						m.Lost = Tally{"odd": {1, address}}
					}
				}))
			}
			if r.IntN(4) == 0 {
				lost = Tally{Reason(pick("odd", "old")): {1 + r.IntN(2), instance}}
			}
			return all, lost
		}
		b, published, there := New(named()), table{}, map[[2]string]part{}
		for range 60 {
			for range 1 + r.IntN(3) {
				key := [2]string{pick("s", "t", "no name"), pick("a", "b", "c", "d", "e")}
				all, lost := random(key[1])
				b.Set(key[0], key[1], all, lost)
				there[key] = part{all, lost}
			}
			published.take(t, b.Changes())
			again, want := New(named()), table{}
			for key, p := range there {
				again.Set(key[0], key[1], p.members, p.lost)
			}
			want.take(t, again.Changes())
			if !maps.Equal(published, want) {
				t.Fatalf("seed %d:\n%q\nnot\n%q", seed, published, want)
			}
			if fmt.Sprint(b.Lost()) != fmt.Sprint(again.Lost()) {
				t.Fatalf("seed %d: %v is lost, not %v", seed, b.Lost(), again.Lost())
			}
		}
	}
}

// TestFaults: of a thousand services something is shown, of all it is counted.
func TestFaults(t *testing.T) {
	b := New(named())
	for i := range mostShown + 5 {
		b.Set(fmt.Sprintf("s%d", i), "a", nil, Tally{"odd": {1, "x"}})
	}
	if got := b.Changes().Upserts; len(got[Faults]) != mostShown || len(got[state.Services]) != 0 {
		t.Errorf("%d rows", len(got[Faults]))
	}
	if got := b.naming.sums(b.lost); got != fmt.Sprintf("odd=%d", mostShown+5) {
		t.Error(got)
	}
}

func TestIsLabel(t *testing.T) {
	for key, want := range map[string]bool{
		"a": true, "a.b_c-D": true, "example.com/a": true, "": false, "-a": false, "a b": false, "/a": false,
		"a/": false, strings.Repeat("a", 64): false,
	} {
		if IsLabel(key) != want {
			t.Errorf("%q: %v", key, !want)
		}
	}
}
