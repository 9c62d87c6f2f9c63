package incr

import (
	"math"
	"runtime"
	"sync"
)

// Graph holds inputs, functions, collections and roots, and everything computed from them. Its
// methods may be used by several goroutines; waves exclude each other and all readers.
type Graph struct {
	// turn is held for writing by a wave and for reading by those who look at the graph between
	// waves.
	turn    sync.RWMutex
	workers int

	// mu guards everything below. It is not held while an author's function runs.
	mu       sync.Mutex
	done     *sync.Cond
	waiters  int
	nodes    nodes
	families []family
	ops      *operators
	queue    queue
	flights  map[id]*task
	front    int32
	wave     uint32
	helping  int
	enough   int
	runs     int
	staged   []func()
	failures map[id]failing
	cyclic   map[id]struct{}
	lost     map[id]uint32
	roots    map[id]root
	fresh    []id
	touched  []root
	cuts     []edge
	idle     []resting
}

// Option changes how a Graph works.
type Option func(*Graph)

// Workers sets how many functions a wave runs at once; 1 is sequential. The default is the number
// of CPUs.
func Workers(n int) Option { return func(g *Graph) { g.workers = max(n, 1) } }

// New returns an empty graph.
func New(options ...Option) *Graph {
	g := &Graph{
		workers:  runtime.GOMAXPROCS(0),
		front:    doneFront,
		enough:   enoughToShare,
		flights:  map[id]*task{},
		failures: map[id]failing{},
		cyclic:   map[id]struct{}{},
		lost:     map[id]uint32{},
		roots:    map[id]root{},
		nodes:    newNodes(),
	}
	g.done = sync.NewCond(&g.mu)
	g.ops = newOperators(g)
	g.ops.index = g.addFamily(g.ops)
	for _, o := range options {
		o(g)
	}
	return g
}

// doneFront is the front of a graph in which nothing is left to do.
const doneFront = math.MaxInt32

// Read calls f with a context that sees the graph between two waves. What f makes the graph compute
// is let go again after two waves, unless a root needs it. f must not keep c, call Wave or wait for
// one.
func (g *Graph) Read(f func(c *Ctx)) {
	g.turn.RLock()
	defer g.turn.RUnlock()
	f(&Ctx{g: g, task: &task{}})
}

// Nodes returns how many nodes are live: rows, results of functions, elements and roots.
func (g *Graph) Nodes() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.nodes.live
}

// Runs returns how many times authors' functions have run.
func (g *Graph) Runs() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs
}

// enroll adds a family whose nodes have their keys and values in s.
func (g *Graph) enroll(f family, s *store) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.index = g.addFamily(f)
}

func (g *Graph) addFamily(f family) uint16 {
	g.families = append(g.families, f)
	return uint16(len(g.families) - 1)
}

func (g *Graph) familyOf(n id) family { return g.families[g.nodes.at(n).family] }
