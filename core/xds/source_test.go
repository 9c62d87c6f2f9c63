package xds

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	cds   = ClusterType
	eds   = typeEndpoints
	lds   = typeListeners
	rds   = typeRoutes
	sds   = typeSecrets
	ecds  = typeExtensions
	nds   = "type.googleapis.com/istio.networking.nds.v1.NameTable"
	plain = "type.googleapis.com/example.Plain"
)

// standardTraits are those of Envoy's types, of Istio's name table, and of one without any.
func standardTraits() map[string]*pb.Traits {
	return map[string]*pb.Traits{
		cds:   {FullState: true, Wildcard: true, Rank: 10},
		eds:   {After: cds, EmptyWhenAbsent: true, Rank: 20},
		lds:   {FullState: true, Wildcard: true, Rank: 30},
		rds:   {EmptyWhenAbsent: true, Rank: 40},
		sds:   {Sensitive: true, Rank: 50},
		ecds:  {NeverRemoved: true, Rank: 35},
		nds:   {Unnamed: true, Wildcard: true, Rank: 60},
		plain: {Rank: 100},
	}
}

// twin is a Source in this process: one view per type, whose resources the test sets. Names that
// are in `unknown` aren't known yet.
type twin struct {
	mu          sync.Mutex
	traits      map[string]*pb.Traits
	number      uint64
	current     map[string]*view.Snapshot
	resources   map[string]map[string]string // type -> name -> content
	unknown     map[string]map[string]bool
	connections map[*twinConnection]bool
	refuse      error
	body        func(typeURL, name, content string) *view.Body
	failed      error // what Pull says
	outcomes    []Outcome
	last        uint64
}

func newTwin() *twin {
	return &twin{
		traits: standardTraits(), body: resource, number: 1, current: map[string]*view.Snapshot{}, resources: map[string]map[string]string{},
		unknown: map[string]map[string]bool{}, connections: map[*twinConnection]bool{},
	}
}

// resource is a value whose field 1 is the name, as Envoy's types have it, and whose field 99 is
// content.
func resource(typeURL, name, content string) *view.Body {
	return view.NewBody(typeURL, name, appendText(appendText(nil, 1, name), protowire.Number(99), content), 0)
}

// change edits the resources and serves them as the next revision.
func (t *twin) change(edit func(resources map[string]map[string]string)) {
	t.mu.Lock()
	edit(t.resources)
	t.number++
	t.refresh()
	connections := slices.Collect(maps.Keys(t.connections))
	t.mu.Unlock()
	for _, c := range connections {
		c.wake(WakeAll)
	}
}

// refresh makes new snapshots where the content differs.
func (t *twin) refresh() {
	for typeURL := range t.traits {
		old := t.current[typeURL]
		var bodies []*view.Body
		for name, content := range t.resources[typeURL] {
			b := t.body(typeURL, name, content)
			if o := old.Get(name); o != nil && o.Exists() && o.Version() == b.Version() {
				b = o
			}
			bodies = append(bodies, b)
		}
		complete := len(t.unknown[typeURL]) == 0
		if !complete { // then what is absent has to be said
			for c := range t.connections {
				for _, n := range c.wants[typeURL].names {
					if _, ok := t.resources[typeURL][n]; !ok && !t.unknown[typeURL][n] &&
						!slices.ContainsFunc(bodies, func(b *view.Body) bool { return b.Name() == n }) {
						bodies = append(bodies, view.Absent(n))
					}
				}
			}
		}
		set := view.NewSet(bodies)
		if old != nil && old.Complete() == complete && slices.Equal(set.Bodies(), old.Bodies()) {
			continue
		}
		t.current[typeURL] = view.NewSnapshot(set, nil, complete)
	}
}

func (t *twin) Connect(_ context.Context, p Peer, wake func(Wake)) (Connection, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refuse != nil {
		return nil, t.refuse
	}
	t.last++
	c := &twinConnection{twin: t, id: t.last, wake: wake, peer: p, wants: map[string]wish{}}
	t.connections[c] = true
	t.refresh()
	return c, nil
}

func (t *twin) reported() []Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.outcomes), func(o Outcome) bool { return o.Type == "" }) // it only says what is answered
}

type twinConnection struct {
	twin  *twin
	id    uint64
	wake  func(Wake)
	peer  Peer
	wants map[string]wish
}

func (c *twinConnection) ID() uint64 { return c.id }

func (c *twinConnection) Offers(typeURL string) (*pb.Traits, bool) {
	t, ok := c.twin.traits[typeURL]
	return t, ok
}

func (c *twinConnection) Subscribe(typeURL string, wildcard bool, names []string) {
	c.twin.mu.Lock()
	defer c.twin.mu.Unlock()
	c.wants[typeURL] = wish{typeURL, wildcard, names}
	if !wildcard && len(names) == 0 {
		delete(c.wants, typeURL)
	}
	c.twin.refresh()
}

func (c *twinConnection) Pull() Served {
	c.twin.mu.Lock()
	defer c.twin.mu.Unlock()
	s := Served{Epoch: 1, Number: c.twin.number, Types: map[string]*view.Snapshot{}, Err: c.twin.failed}
	for typeURL := range c.wants {
		s.Types[typeURL] = c.twin.current[typeURL]
	}
	return s
}

func (c *twinConnection) Report(o Outcome) {
	c.twin.mu.Lock()
	defer c.twin.mu.Unlock()
	c.twin.outcomes = append(c.twin.outcomes, o)
}

func (c *twinConnection) Close() {
	c.twin.mu.Lock()
	defer c.twin.mu.Unlock()
	delete(c.twin.connections, c)
}

// wanted returns the names of a type that some stream wants.
func (t *twin) wanted(typeURL string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wantedLocked(typeURL)
}

func (t *twin) wantedLocked(typeURL string) []string {
	all := map[string]bool{}
	for c := range t.connections {
		for _, n := range c.wants[typeURL].names {
			all[n] = true
		}
	}
	return slices.Collect(maps.Keys(all))
}
