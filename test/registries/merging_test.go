package registries

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/swap/api"
	"github.com/coxswain-mesh/coxswain/test/bench/usage"
	"github.com/coxswain-mesh/coxswain/test/etcd"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { Main(m) }

// merged is a control plane with two registries that have the same services: an etcd, and
// ServiceEntries in files.
type merged struct {
	etcd   *etcd.Server
	plane  *mesh.Plane
	client *client
	dir    string
	set    string
}

const mergedPrefix = "/merged/"

// both are services of both registries.
const manyBoth, eachBoth = 100, 50

func bothHost(i int) string { return fmt.Sprintf("both-%d.example", i) }

// entryAddress and etcdAddress are those of one of a service's instances in each registry.
func entryAddress(service, i int) string { return fmt.Sprintf("10.1.%d.%d", service, i+1) }
func etcdAddress(service, i int) string  { return fmt.Sprintf("10.2.%d.%d", service, i+1) }

// addressesOf are those of all instances.
func addressesOf(of func(service, i int) string, service int) (all []string) {
	for i := range eachBoth {
		all = append(all, of(service, i))
	}
	return all
}

func (m *merged) key(service, i int) string {
	return fmt.Sprintf("%s%s/%d", mergedPrefix, bothHost(service), i)
}

// register puts a service's instances into etcd.
func (m *merged) register(t *testing.T, service int) {
	t.Helper()
	for i := range eachBoth {
		m.etcd.Put(t, m.key(service, i), fmt.Sprintf(`{"host": %q, "address": %q, "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}]}`,
			bothHost(service), etcdAddress(service, i)))
	}
}

func (m *merged) deregister(t *testing.T, service int) {
	t.Helper()
	for i := range eachBoth {
		m.etcd.Delete(t, m.key(service, i))
	}
}

func bothCluster(service int) string { return fmt.Sprintf("outbound|80||%s", bothHost(service)) }

// newMerged starts the control plane; merge is a line of etcd's entry.
func newMerged(t *testing.T, merge string) *merged {
	t.Helper()
	m := &merged{etcd: etcd.Start(t), dir: t.TempDir()}
	var entries strings.Builder
	for s := range manyBoth {
		fmt.Fprintf(&entries, "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: both-%d, "+
			"namespace: default}\nspec:\n  hosts: [%s]\n  resolution: STATIC\n"+
			"  ports: [{number: 80, name: http, protocol: HTTP}]\n  endpoints:\n", s, bothHost(s))
		for _, a := range addressesOf(entryAddress, s) {
			fmt.Fprintf(&entries, "  - address: %s\n", a)
		}
		m.register(t, s)
	}
	put(t, filepath.Join(m.dir, "entries.yaml"), entries.String())
	m.set = filepath.Join(t.TempDir(), "plugins.yaml")
	m.write(t, merge)
	m.plane = mesh.Start(t, program, m.dir, "--plugins", m.set)
	m.plane.Ready(t)
	var clusters []string
	for s := range manyBoth {
		clusters = append(clusters, bothCluster(s))
	}
	m.client = connect(t, m.plane.XDS, clusters, nil)
	return m
}

func (m *merged) write(t *testing.T, merge string) {
	t.Helper()
	set, err := os.ReadFile(filepath.Join(envoy.Root(t), "plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, m.set, fmt.Sprintf(
		"%s\n  - name: etcd\n    kind: registry\n    builtin: registry/etcd\n    %s\n    config: {endpoints: [\"http://%s\"], prefix: %s}\n",
		set, merge, m.etcd.Address, mergedPrefix,
	))
}

// serves waits until a service's endpoints are those of these registries.
func (m *merged) serves(t *testing.T, what string, service int, of ...func(service, i int) string) {
	t.Helper()
	var all []string
	for _, f := range of {
		all = append(all, addressesOf(f, service)...)
	}
	m.client.until(t, what, bothCluster(service), all...)
}

// whole fails if any set was emptied, or a cluster went.
func (m *merged) whole(t *testing.T) {
	t.Helper()
	for _, text := range m.client.lost() {
		t.Error(text)
	}
}

// show returns what `coxswain plugins show` says, as text and as JSON.
func (m *merged) show(t *testing.T, plugin string) (text string, detail api.Detail) {
	t.Helper()
	text, ok := (&world{plane: m.plane}).plugin(t, "show", plugin)
	if !ok {
		t.Fatal(text)
	}
	raw, _ := (&world{plane: m.plane}).plugin(t, "show", plugin, "-o", "json")
	if err := json.Unmarshal([]byte(raw), &detail); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return text, detail
}

// TestUnion: the endpoints of both, whatever becomes of one.
func TestUnion(t *testing.T) {
	m := newMerged(t, "merge: union")
	for s := range manyBoth {
		m.serves(t, "both have it", s, entryAddress, etcdAddress)
	}
	m.deregister(t, 0)
	m.serves(t, "etcd has it no more", 0, entryAddress)
	m.register(t, 0)
	m.serves(t, "etcd has it again", 0, entryAddress, etcdAddress)
	text, d := m.show(t, "etcd")
	if want := "rows of services: 0 served, 100 hidden\n    hidden, 100 (order): plugin serviceentry has the same key, " +
		"and stands earlier in plugins.yaml; such as default/both-0.example"; !strings.Contains(text, want) {
		t.Errorf("plugins show says:\n%s\nand not:\n%s", text, want)
	}
	if d.Tables[0].Table != "endpoints" || d.Tables[0].Served != manyBoth*eachBoth || d.Tables[0].Hidden != nil {
		t.Errorf("of endpoints it is said: %+v", d.Tables[0])
	}
	m.whole(t)
}

// TestPriority: the preferred registry's endpoints alone, and the other's once it has a service no
// more; never an empty set between, and what is not the registry's word changes nothing: its plugin
// dies or is swapped, or etcd is away.
func TestPriority(t *testing.T) {
	m := newMerged(t, "merge: {priority: 10}")
	for s := range manyBoth {
		m.serves(t, "etcd is preferred", s, etcdAddress)
	}
	text, d := m.show(t, "serviceentry")
	if want := "hidden, 5000 (priority): plugin etcd has priority 10 (merge), this one 0; such as default/both-0.example/http/10.1.0.10:80"; !strings.Contains(
		text, want,
	) {
		t.Errorf("plugins show says:\n%s\nand not:\n%s", text, want)
	}
	if d.Tables[0].Served != 0 || len(d.Tables[0].Hidden) != 1 || d.Tables[0].Hidden[0].By != "etcd" || d.Tables[0].Hidden[0].Reason != "priority" {
		t.Errorf("of endpoints it is said: %+v", d.Tables[0])
	}

	for range 3 {
		before := m.plane.Signal(t, "etcd", syscall.SIGKILL)
		wait.For(t, "the plugin runs again", func() error {
			if p := m.plane.Plugins(t)["etcd"]; p.PID == before.PID || p.State != "serving" {
				return fmt.Errorf("it is %s", p.State)
			}
			return nil
		})
	}
	if out, ok := (&world{plane: m.plane}).plugin(t, "restart", "etcd"); !ok {
		t.Fatal(out)
	}
	m.etcd.Down()
	wait.For(t, "it is shown that etcd is away", func() error {
		if p := m.plane.Plugins(t)["etcd"]; p.Away == nil || p.Away.Dropped || !p.Away.Drops.IsZero() {
			return fmt.Errorf("it is %+v", p.Away)
		}
		return nil
	})
	passes(t, 2*time.Second)
	m.etcd.Up(t)
	wait.For(t, "it is shown that etcd is there", func() error {
		if p := m.plane.Plugins(t)["etcd"]; p.Away != nil {
			return fmt.Errorf("it is %+v", p.Away)
		}
		return nil
	})
	for s := range manyBoth {
		m.serves(t, "all is as before", s, etcdAddress)
		if at, seen := m.client.arrived(entryAddress(s, 0)); seen {
			t.Errorf("the other registry's endpoint of %s was served at %v", bothHost(s), at)
		}
	}

	moved, cpu := []time.Duration{}, usage.CPU(m.plane.PID())
	moving := 3
	if need.Long() {
		moving = 30
	}
	for s := range moving { // others have 3,500 endpoints or more in each registry
		began := time.Now()
		m.deregister(t, s)
		m.serves(t, "etcd has it no more", s, entryAddress)
		moved = append(moved, time.Since(began))
	}
	slices.Sort(moved)
	t.Logf("%d services of %d endpoints move to the other registry: p50 %v, most %v, and cost %.0f ms of processor time each", moving, eachBoth,
		moved[moving/2].Round(time.Millisecond), moved[moving-1].Round(time.Millisecond), (usage.CPU(m.plane.PID())-cpu)*1000/float64(moving))
	m.serves(t, "the others don't move", 50, etcdAddress)
	if h := m.plane.Plugins(t)["etcd"].Held; h != nil {
		t.Errorf("it is held: %v", h.Reasons)
	}
	m.register(t, 0)
	m.serves(t, "etcd has one again", 0, etcdAddress)
	m.whole(t)

	m.write(t, "merge: {priority: -1}") // a live change
	m.serves(t, "etcd is for failures", 50, entryAddress)
	m.serves(t, "etcd is for failures", 0, entryAddress)
	m.write(t, "merge: union")
	m.serves(t, "both", 50, entryAddress, etcdAddress)
	m.write(t, "merge: {priority: 1}\n    onLoss: {drop-after: 2s}")
	m.serves(t, "etcd is preferred", 50, etcdAddress)
	m.etcd.Down()
	m.serves(t, "etcd is away for too long", 50, entryAddress)
	m.etcd.Up(t)
	m.serves(t, "etcd is back", 50, etcdAddress)
	m.whole(t)
}
