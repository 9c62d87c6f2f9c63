package guard

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestSingle: one thing of several goes on purpose, a service with its endpoints too; two things,
// or one beside another's endpoints, need not.
func TestSingle(t *testing.T) {
	env, shard := environment.New(), &environment.Shard{Name: "files"}
	env.Pending.Update(shard, "VirtualService", []*pb.Row{{Key: "ns/stays"}}, nil)
	env.Pending.Update(shard, environment.Services, []*pb.Row{{Key: "ns/stays.com"}}, nil)
	env.Pending.Commit(false, nil)
	gone := func(table, key string) environment.UnseenRow {
		return environment.UnseenRow{Name: environment.Name{Table: table, Key: key}, Shard: shard}
	}
	route, service := gone("VirtualService", "ns/v"), gone(environment.Services, "ns/a.com")
	for name, c := range map[string]struct {
		gone []environment.UnseenRow
		own  []string
		want bool
	}{
		"a route":                                {[]environment.UnseenRow{route}, nil, true},
		"a service":                              {[]environment.UnseenRow{service}, nil, true},
		"a service with its endpoints":           {[]environment.UnseenRow{service}, []string{"ns/a.com"}, true},
		"a service and another's endpoints":      {[]environment.UnseenRow{service}, []string{"ns/b.com"}, false},
		"a service with its and others'":         {[]environment.UnseenRow{service}, []string{"ns/a.com", "ns/b.com"}, false},
		"a route and a service's endpoints":      {[]environment.UnseenRow{route}, []string{"ns/a.com"}, false},
		"two":                                    {[]environment.UnseenRow{route, service}, nil, false},
		"the only row of its kind that there is": {[]environment.UnseenRow{gone("Gateway", "ns/g")}, nil, false},
	} {
		w := &causes{gone: c.gone, own: map[string]bool{}}
		for _, s := range c.own {
			w.own[s] = true
		}
		if got := w.single(env); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
