package registries

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// Steps of a trial, in order.
const (
	FirstList   = "first list"
	Add         = "add"
	Remove      = "remove"
	Weight      = "weight"
	Health      = "health"
	Metadata    = "metadata"
	Restart     = "restart"
	Cut         = "cut"
	Stall       = "stall"
	Partial     = "partial answers"
	Malformed   = "malformed"
	Credentials = "credentials"
	Many        = "many"
	Killed      = "killed"
	Swapped     = "swapped"
	Dropped     = "dropped"
)

// Instance is what is registered. Services and IDs are made of a-z, 0-9 and dashes.
type Instance struct {
	Service, ID string
	// Address is an IPv4 address. All instances of a service have the same Port.
	Address string
	Port    int
	// Weight counts relative to that of others; it is at least 1.
	Weight    int
	Unhealthy bool
	// Metadata becomes labels of the endpoint.
	Metadata map[string]string
}

// Server is a registry's real server, on loopback, started. It ends with the test.
type Server interface {
	// Address is HOST:PORT where its clients connect.
	Address() string
	// Put registers instances, and changes those that are there, by ID; it connects to the server
	// itself, not by the line. Several goroutines call it at once.
	Put(t testing.TB, all ...Instance)
	// Remove takes instances back.
	Remove(t testing.TB, all ...Instance)
	// Stop ends the server as a crash does, by its process id, and Start starts it again, at the
	// same address, with what it keeps on disk. After Start all instances are put again, as those
	// who register do. The t of Start is that of the whole test.
	Stop(t testing.TB)
	Start(t testing.TB)
}

// Forgetter is an optional extra of servers.
type Forgetter interface {
	// Forget makes that who was away can't have changes one by one any more, as by compaction.
	Forget(t testing.TB)
}

// Spoiler is an optional extra of servers; those who lack it say so in Trial.Cannot[Malformed].
type Spoiler interface {
	// Spoil puts a record in the instance's place that can't be read. It returns what `coxswain
	// config`, or the log, says of it then.
	Spoil(t testing.TB, i Instance) (says string)
}

// Trial is one of a registry.
type Trial struct {
	// Builtin is the plugin, such as registry/etcd.
	Builtin string
	// Entry has other lines of the entry in plugins.yaml than `builtin: registry/etcd`, given the
	// address at which the plugin reaches the server: for a program or a module.
	Entry func(address string) string
	// Start starts the server. Its TestMain may have built it.
	Start func(t testing.TB) Server
	// Config is the plugin's, given the address at which it reaches the server (the line's).
	Config func(address string) map[string]any
	// Wrong is one with credentials that the server refuses, and what the log says then (a part of
	// a line).
	Wrong func(address string) (config map[string]any, says string)
	// Host is a service's host in the mesh, and ServicePort its port there, given that of its
	// instances; nil: the same.
	Host        func(service string) string
	ServicePort func(port int) int
	// Offsets are further ports of the server that its clients reach by themselves, as distances
	// from the first: lines carry them, too.
	Offsets []int
	// Session is how long the server or the client remembers each other: a cut lasts longer. At
	// least 5 s.
	Session time.Duration
	// Cannot says of steps why they can't be done.
	Cannot map[string]string
}

// program is the path of the binary under test.
var program string

// Main is the TestMain of a registry's package.
func Main(m *testing.M) {
	flag.Parse()
	mesh.Quick(&program, m.Run)
}

// Program is the path of the binary under test.
func Program() string { return program }

// step is one of a trial.
type step struct {
	name string
	run  func(*world, *testing.T)
	// slow ones are left to make test-all.
	slow bool
	// empties: endpoints are to go, so that requests may fail.
	empties bool
}

// steps is never changed.
var steps = [...]step{
	{name: FirstList, run: (*world).firstList}, {name: Add, run: (*world).add}, {name: Remove, run: (*world).goes}, {name: Weight, run: (*world).weight},
	{name: Health, run: (*world).health}, {name: Metadata, run: (*world).metadata}, {name: Restart, run: (*world).restart},
	{name: Cut, run: (*world).cut, slow: true}, {name: Stall, run: (*world).stall, slow: true}, {name: Partial, run: (*world).partial, slow: true},
	{name: Malformed, run: (*world).malformed}, {name: Credentials, run: (*world).credentials, slow: true}, {name: Many, run: (*world).manyMore, slow: true},
	{name: Killed, run: (*world).killed}, {name: Swapped, run: (*world).swapped}, {name: Dropped, run: (*world).dropped, empties: true},
}

// Run walks through the steps, and ends with the first that fails.
func (tr Trial) Run(t *testing.T) {
	for name := range tr.Cannot {
		if !slices.ContainsFunc(steps[:], func(s step) bool { return s.name == name }) {
			t.Fatalf("there is no step %q", name)
		}
	}
	w := newWorld(t, tr)
	var table strings.Builder
	defer func() { t.Logf("%s\n%s", tr.Builtin, table.String()) }()
	for _, s := range steps {
		if why := tr.Cannot[s.name]; why != "" {
			fmt.Fprintf(&table, "%-16s can't be done: %s\n", s.name, why)
			continue
		}
		if s.slow && !need.Long() {
			fmt.Fprintf(&table, "%-16s left to make test-all\n", s.name)
			continue
		}
		began := time.Now()
		ok := t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) { w.step(t, s.empties, func() { s.run(w, t) }) })
		word := "passed"
		if !ok {
			word = "FAILED"
		}
		fmt.Fprintf(&table, "%-16s %s, %v\n", s.name, word, time.Since(began).Round(time.Millisecond))
		if !ok { // what comes builds upon it
			return
		}
		if s.name == FirstList { // what outlives the step
			w.serve(t, "abcde")
			w.edge(t)
		}
	}
}
