package registration

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"grace": "1ms"}`: "grace", `{"proxies": ["10.0.0.0/8", "10.0.0.1"]}`: "proxies[1]",
		`{"limits": {"group": 0}}`: "limits.group", `{"lease": "2h"}`: "lease", `{"more": 1}`: "more",
		`{"writesPerSecond": 0}`: "writesPerSecond", `{"namespace": ""}`: "namespace",
	} {
		_, err := strict.Parse([]byte(config), defaults())
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// client is one of a machine, whose metadata has more fields than usual.
func client(t *testing.T, number uint64, address string, more map[string]any) sdk.Client {
	t.Helper()
	fields := map[string]any{"NAMESPACE": "shop", "AUTO_REGISTER_GROUP": "web", "INSTANCE_IPS": address}
	maps.Copy(fields, more)
	metadata, err := structpb.NewStruct(fields)
	if err != nil {
		t.Fatal(err)
	}
	node, err := proto.Marshal(&corev3.Node{Id: "sidecar~" + address + "~vm.shop~shop.svc.cluster.local", Metadata: metadata})
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Client{
		Connection: number, Node: node, Identities: []string{"spiffe://cluster.local/ns/shop/sa/vm"}, RemoteAddress: "[::ffff:" + address + "]:4711",
		Since: time.Unix(1_700_000_000+int64(number), 5),
	}
}

// TestWho: who may register, and by which name, and why others may not.
func TestWho(t *testing.T) {
	c, err := strict.Parse([]byte(`{"proxies": ["10.9.0.0/16"]}`), defaults())
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range map[string]struct {
		more    map[string]any
		change  func(*sdk.Client)
		want    string
		refused string
	}{
		"usual":             {want: "shop/web-10.0.0.1"},
		"a network":         {more: map[string]any{"NETWORK": "there"}, want: "shop/web-10.0.0.1-there"},
		"several addresses": {more: map[string]any{"INSTANCE_IPS": "10.0.0.1,fd00::1"}, want: "shop/web-10.0.0.1"},
		"none listed":       {more: map[string]any{"INSTANCE_IPS": ""}, want: "shop/web-10.0.0.1"},
		"IPv6": {
			more:   map[string]any{"INSTANCE_IPS": "fd00::1"},
			change: func(c *sdk.Client) { c.RemoteAddress = "[fd00::1]:1" }, want: "shop/web-fd00--1",
		},
		"by way of a proxy": {change: func(c *sdk.Client) { c.RemoteAddress = "10.9.1.1:1" }, want: "shop/web-10.0.0.1"},
		"in plain text":     {change: func(c *sdk.Client) { c.Plain = true }, refused: "plain text"},
		"nobody":            {change: func(c *sdk.Client) { c.Identities = nil }, refused: "no identity"},
		"another namespace": {more: map[string]any{"NAMESPACE": "other"}, refused: "no identity of namespace"},
		"an odd identity":   {change: func(c *sdk.Client) { c.Identities = []string{"vm.shop"} }, refused: "no identity"},
		"another address": {
			change:  func(c *sdk.Client) { c.RemoteAddress = "10.0.0.2:1" },
			refused: "claims the address 10.0.0.1 and is connected from 10.0.0.2",
		},
		"no remote address":  {change: func(c *sdk.Client) { c.RemoteAddress = "@" }, refused: "nobody knows from where"},
		"no address":         {more: map[string]any{"INSTANCE_IPS": "a.example"}, refused: "claims no address"},
		"any address":        {more: map[string]any{"INSTANCE_IPS": "0.0.0.0"}, refused: "claims no address"},
		"a zone":             {more: map[string]any{"INSTANCE_IPS": "fe80::1%eth0"}, refused: "claims no address"},
		"no group":           {more: map[string]any{"AUTO_REGISTER_GROUP": 7.0}, refused: "names no namespace, or no group"},
		"a group with slash": {more: map[string]any{"AUTO_REGISTER_GROUP": "../x"}, refused: "can't be the name"},
		"a long name":        {more: map[string]any{"AUTO_REGISTER_GROUP": strings.Repeat("g", 250)}, refused: "can't be the name"},
		"a node of noise":    {change: func(c *sdk.Client) { c.Node = []byte{0xff} }, refused: "can't be read"},
	} {
		of1 := client(t, 1, "10.0.0.1", of.more)
		if of.change != nil {
			of.change(&of1)
		}
		a, err := c.read(of1)
		switch {
		case of.refused != "" && (err == nil || !strings.Contains(err.Error(), of.refused)):
			t.Errorf("%s: %v", name, err)
		case of.refused == "" && (err != nil || a.key != of.want):
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// TestNext: what becomes of an entry, by whose it is and who is connected.
func TestNext(t *testing.T) {
	now, word := time.Unix(1_700_000_100, 0), ""
	c := defaults()
	a, err := c.read(client(t, 1, "10.0.0.1", nil))
	if err != nil {
		t.Fatal(err)
	}
	spoken := *a
	spoken.word = &word
	v := view{me: "me", now: now, grace: 10 * time.Second, settled: true, reports: true, exact: true}
	early := v
	early.settled = false
	of := func(controller string, change func(*entry)) *entry {
		e := &entry{group: "web", controller: controller, isConnected: true, connected: a.since, address: "10.0.0.1", identity: a.identity(), checked: true}
		if change != nil {
			change(e)
		}
		return e
	}
	gone := func(ago time.Duration) func(*entry) {
		return func(e *entry) { e.isConnected, e.connected, e.gone = false, time.Time{}, now.Add(-ago) }
	}
	for name, x := range map[string]struct {
		v    view
		e    *entry
		a    *agent
		want step
	}{
		"nothing":                             {v, nil, nil, nothing},
		"new":                                 {v, nil, a, create},
		"as it is":                            {v, of("me", nil), a, nothing},
		"by hand":                             {v, of("me", func(e *entry) { e.group = "" }), a, refuse},
		"without a controller":                {v, of("", nil), a, refuse},
		"by hand, nobody connected":           {v, of("", gone(time.Hour)), nil, nothing},
		"another group":                       {v, of("me", func(e *entry) { e.group = "web-10.0.0.1" }), a, refuse},
		"another address":                     {v, of("me", func(e *entry) { e.address = "10.0.0.2" }), a, refuse},
		"another identity":                    {v, of("other", func(e *entry) { e.identity = "spiffe://x/ns/shop/sa/y" }), a, refuse},
		"another account":                     {v, of("istiod-1", func(e *entry) { e.identity, e.account = "", "y" }), a, refuse},
		"an istiod's":                         {v, of("istiod-1", func(e *entry) { e.identity = ""; e.connected = a.since.Add(-time.Hour) }), a, claim},
		"connected elsewhere later":           {v, of("other", func(e *entry) { e.connected = a.since.Add(time.Second) }), a, nothing},
		"the later connection here has gone":  {v, of("me", func(e *entry) { e.connected = a.since.Add(time.Second) }), a, claim},
		"connected at no time":                {v, of("other", func(e *entry) { e.connected = time.Time{} }), a, claim},
		"gone elsewhere, and connected here":  {v, of("other", gone(0)), a, claim},
		"healthy":                             {v, of("me", nil), &spoken, report},
		"healthy, and said":                   {v, of("me", func(e *entry) { e.health = "True" }), &spoken, nothing},
		"healthy, with an old message":        {v, of("me", func(e *entry) { e.health, e.message = "True", "bad" }), &spoken, report},
		"healthy, unchecked":                  {v, of("me", func(e *entry) { e.checked = false }), &spoken, nothing},
		"gone":                                {v, of("me", nil), nil, part},
		"gone, as far as is known":            {early, of("me", nil), nil, nothing},
		"gone from another":                   {v, of("other", nil), nil, nothing},
		"gone for less than the grace":        {v, of("me", gone(9*time.Second)), nil, nothing},
		"gone for the grace":                  {v, of("me", gone(10*time.Second)), nil, remove},
		"gone for the grace, another's":       {v, of("other", gone(time.Hour)), nil, nothing},
		"neither connected nor gone, unknown": {v, of("me", func(e *entry) { e.isConnected, e.connected = false, time.Time{} }), nil, nothing},
	} {
		if got, at, why := x.v.next(x.e, x.a); got != x.want || (got == refuse) != (why != "") || (name == "gone for less than the grace") != !at.IsZero() {
			t.Errorf("%s: step %d at %v (%s), want %d", name, got, at, why, x.want)
		}
	}
}

// TestPace: an entry that changes all the time changes ever more rarely, and one that rested does
// so at once.
func TestPace(t *testing.T) {
	var p pace
	now, writes := time.Unix(1_700_000_000, 0), 0
	for end := now.Add(time.Hour); now.Before(end); now = p.free {
		p.slow(now)
		writes++
	}
	if writes > 70 || p.pause != longest {
		t.Errorf("%d writes in an hour, then a pause of %v", writes, p.pause)
	}
	now = now.Add(time.Hour)
	if p.slow(now); p.pause != shortest {
		t.Errorf("after a rest the pause is %v", p.pause)
	}
}

// world keeps objects as an API server does, and publishes their rows.
type world struct {
	t *testing.T
	h *plugintest.Harness

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // by TABLE NAMESPACE/NAME
	dirty   map[string]bool
	writes  map[string]int // by key
	// fails are keys whose changes fail; while hangs is held nothing is answered.
	fails map[string]bool
	hangs sync.RWMutex
}

const group = `{"apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup", "metadata": {"namespace": "shop", ` +
	`"name": "web", "uid": "u1"}, "spec": {"template": {"labels": {"app": "web"}}}}`

func newWorld(t *testing.T, config string, objects ...string) *world {
	t.Helper()
	w := &world{t: t, objects: map[string]map[string]any{}, dirty: map[string]bool{}, writes: map[string]int{}, fails: map[string]bool{}}
	w.h = plugintest.Start(t, Plugin(), []byte(config))
	w.h.OnStore(w.answer)
	for _, text := range objects {
		w.put(text)
	}
	w.publish()
	return w
}

// put writes an object as somebody else does.
func (w *world) put(text string) {
	w.t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m := o["metadata"].(map[string]any)
	w.keep(fmt.Sprintf("networking.istio.io/%v", o["kind"]), fmt.Sprintf("%v/%v", m["namespace"], m["name"]), o)
}

func (w *world) keep(table, key string, o map[string]any) {
	w.version++
	o["metadata"].(map[string]any)["resourceVersion"] = fmt.Sprint(w.version)
	w.objects[table+" "+key] = o
	w.dirty[table+" "+key] = true
}

func (w *world) drop(table, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.objects, table+" "+key)
	w.dirty[table+" "+key] = true
}

// publish sends rows of what has changed.
func (w *world) publish() {
	w.t.Helper()
	w.mu.Lock()
	changes := map[string]*plugintest.Rows{kinds.WorkloadEntry: {Table: kinds.WorkloadEntry}, kinds.WorkloadGroup: {Table: kinds.WorkloadGroup}}
	for at := range w.dirty {
		table, key, _ := strings.Cut(at, " ")
		of := changes[table]
		o, ok := w.objects[at]
		if !ok {
			of.Deletes = append(of.Deletes, key)
			continue
		}
		text, _ := json.Marshal(o)
		for _, d := range kinds.Read("test", text) {
			if d.Row == nil {
				w.t.Fatalf("%s: %v", text, d.Faults)
			}
			of.Upserts = append(of.Upserts, d.Row)
		}
	}
	none := len(w.dirty) == 0 && w.version > 0
	clear(w.dirty)
	w.mu.Unlock()
	if !none {
		w.h.Commit(*changes[kinds.WorkloadEntry], *changes[kinds.WorkloadGroup])
	}
}

func (w *world) answer(m *pb.Store) *pb.Stored {
	w.hangs.RLock()
	defer w.hangs.RUnlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	key := m.Namespace + "/" + m.Name
	var o map[string]any
	if len(m.Object) > 0 {
		if err := json.Unmarshal(m.Object, &o); err != nil {
			return &pb.Stored{Code: sdk.StoreInvalid, Error: err.Error()}
		}
		of := o["metadata"].(map[string]any)
		key = fmt.Sprintf("%v/%v", of["namespace"], of["name"])
	}
	is, ok := w.objects[m.Table+" "+key]
	if m.Verb == pb.VerbGet && ok {
		text, _ := json.Marshal(is)
		return &pb.Stored{Object: text}
	}
	if m.Verb != pb.VerbGet {
		w.writes[key]++
		if w.fails[key] {
			return &pb.Stored{Code: sdk.StoreForbidden, Error: "a webhook says no"}
		}
	}
	version := m.Version
	if o != nil {
		version, _ = o["metadata"].(map[string]any)["resourceVersion"].(string)
	}
	switch {
	case m.Verb == pb.VerbCreate && ok:
		return &pb.Stored{Code: sdk.StoreAlreadyExists, Error: "it is there"}
	case m.Verb != pb.VerbCreate && !ok:
		return &pb.Stored{Code: sdk.StoreNotFound, Error: "it is not there"}
	case m.Verb != pb.VerbCreate && version != is["metadata"].(map[string]any)["resourceVersion"]:
		return &pb.Stored{Code: sdk.StoreConflict, Error: "it has changed"}
	case m.Verb == pb.VerbDelete:
		delete(w.objects, m.Table+" "+key)
		w.dirty[m.Table+" "+key] = true
		return &pb.Stored{}
	}
	w.keep(m.Table, key, o)
	text, _ := json.Marshal(o)
	return &pb.Stored{Object: text}
}

// waits publishes what changes until something holds of an entry; nil: it is not there.
func (w *world) waits(what, name string, holds func(e *entry) bool) {
	w.t.Helper()
	wait.For(w.t, what, func() error {
		w.publish()
		w.mu.Lock()
		o, ok := w.objects[kinds.WorkloadEntry+" shop/"+name]
		w.mu.Unlock()
		var e *entry
		if ok {
			text, _ := json.Marshal(o)
			var err error
			if e, err = ofObject(text); err != nil {
				return err
			}
		}
		if !holds(e) {
			return fmt.Errorf("%s is %+v", name, e)
		}
		return nil
	})
}

func isConnected(e *entry) bool { return e != nil && e.isConnected }
func isNotThere(e *entry) bool  { return e == nil }

// TestTroubles: changes that fail are tried again and harm no neighbour; somebody's change in
// between is kept; an entry that somebody deletes is made again; what agents say again and again
// is bounded.
func TestTroubles(t *testing.T) {
	w := newWorld(t, `{"alone": true, "grace": "1s"}`, group)
	w.mu.Lock()
	w.fails["shop/web-10.0.0.1"] = true
	w.mu.Unlock()
	w.h.Connect(client(t, 1, "10.0.0.1", nil))
	w.h.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
		return fields["entry"] == "shop/web-10.0.0.1" && strings.Contains(fields["error"], "a webhook says no")
	})
	w.h.Connect(client(t, 2, "10.0.0.2", map[string]any{"PROXY_CONFIG": map[string]any{"readinessProbe": map[string]any{}}}))
	w.waits("the neighbour has an entry", "web-10.0.0.2", isConnected)
	w.mu.Lock()
	w.fails["shop/web-10.0.0.1"] = false
	w.mu.Unlock()
	w.waits("it is tried again", "web-10.0.0.1", isConnected)

	w.drop(kinds.WorkloadEntry, "shop/web-10.0.0.2")
	w.waits("who deletes it finds it again", "web-10.0.0.2", isConnected)
	w.mu.Lock()
	before := w.writes["shop/web-10.0.0.2"]
	w.mu.Unlock()
	for i := range 1000 {
		w.h.Says(2, healthType, strings.Repeat("bad", i%2))
	}
	w.h.Says(2, healthType, "at last")
	w.waits("the last counts", "web-10.0.0.2", func(e *entry) bool { return e != nil && e.health == "False" && e.message == "at last" })
	w.mu.Lock()
	if n := w.writes["shop/web-10.0.0.2"] - before; n > 5 {
		t.Errorf("%d writes", n)
	}
	w.mu.Unlock()

	w.h.Disconnect(1)
	w.waits("it has gone", "web-10.0.0.1", isNotThere)
	w.waits("the neighbour stays", "web-10.0.0.2", isConnected)
	w.drop(kinds.WorkloadGroup, "shop/web")
	w.waits("its group has gone", "web-10.0.0.2", isNotThere)
}

// TestStoreHangs: agents that come and go while the store answers nothing are where they are once
// it does: the core is heard all the while.
func TestStoreHangs(t *testing.T) {
	w := newWorld(t, `{"alone": true, "grace": "1s"}`, group)
	w.hangs.Lock()
	for i := range uint64(5000) {
		w.h.Connect(client(t, i+1, "10.0.0.1", nil))
		w.h.Disconnect(i + 1)
	}
	w.h.Connect(client(t, 6000, "10.0.0.2", nil))
	w.h.Commit() // it is read while nothing is answered
	w.hangs.Unlock()
	w.waits("who is there has an entry", "web-10.0.0.2", isConnected)
	w.waits("who is not has none", "web-10.0.0.1", isNotThere)
}

// TestLimits: there are no more entries of a group than may be, however many agents come at once.
func TestLimits(t *testing.T) {
	w := newWorld(t, `{"alone": true, "grace": "1s", "limits": {"identity": 3}, "writesPerSecond": 1000}`, group)
	for i := range 50 {
		w.h.Connect(client(t, uint64(i+1), fmt.Sprintf("10.0.0.%d", i+1), nil))
	}
	w.h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return strings.Contains(text, "limits.identity")
	})
	w.waits("the first has an entry", "web-10.0.0.1", isConnected)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.objects) != 1+3 {
		t.Errorf("there are %d objects", len(w.objects))
	}
}

func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 1)
	if text := fmt.Sprint(blocks[0]); !strings.Contains(text, kinds.WorkloadGroup) {
		t.Error("the example doesn't grant the table")
	}
}
