package incr

// id names a node; 0 is none.
type id uint32

// node is one row, result, element or operator. What it holds is in its family, at slot.
type node struct {
	// reads, in the order in which they were read; readers, in no order, with those who went away
	// until the wave's end.
	reads, readers []id
	slot           uint32
	// checked is the last wave in which the node was found to be up to date.
	checked uint32
	// idle is the wave in which nothing needed it any more, 0 if something does.
	idle uint32
	// pins counts what needs the node without reading it: being a present row, an operator's
	// element, a root.
	pins   uint32
	height int32
	family uint16
	flags  flags
}

type flags uint16

const (
	present   flags = 1 << iota // has a value
	computed                    // has been computed, or needs no computing
	dirty                       // must run again
	queued                      // is in the queue
	flying                      // somebody is bringing it up to date
	executing                   // its function is running
	failed
	inCycle
	live
)

func (n *node) is(f flags) bool { return n.flags&f != 0 }

func (n *node) needed() bool { return n.pins > 0 || len(n.readers) > 0 }

// family is what nodes of one kind have in common. The graph's lock is held in all methods.
type family interface {
	name() string
	// compute brings a dirty node up to date and reports whether its value changed. It may let go
	// of the lock meanwhile.
	compute(c *Ctx, n id) (changed bool, err error)
	// changed passes on that the value of n changed to those who don't read it as an edge.
	changed(n id)
	// lifted passes on that n has a new height.
	lifted(n id, from, to int32)
	// floor is the least height that n may have, whatever it reads.
	floor(n id) int32
	keyOf(n id) any
	// sources yields nodes that n was made from besides its reads.
	sources(n id, yield func(id))
	// verify updates what n depends on besides its reads.
	verify(t *task, n id)
	// input reports whether nodes are rows.
	input() bool
	// values reports whether nodes are values that an operator or a wave writes: one without a
	// value is a vain read.
	values() bool
	release(n id)
	// trim gives back the room of nodes that are gone, and returns how many pieces of it.
	trim() int
}

const chunkBits = 10
const chunkSize = 1 << chunkBits

// nodes is a slab: nodes don't move, ids are used again.
type nodes struct {
	chunks []*[chunkSize]node
	spaces spaces
	live   int
}

func newNodes() nodes {
	s := nodes{spaces: spaces{bits: chunkBits}}
	s.allocate() // 0 is no id
	return s
}

func (s *nodes) at(n id) *node { return &s.chunks[n>>chunkBits][n&(chunkSize-1)] }

// all yields the ids of those that are in use.
func (s *nodes) all(yield func(id) bool) {
	for i, c := range s.chunks {
		if c == nil {
			continue
		}
		for j := range c {
			if c[j].is(live) && !yield(id(i<<chunkBits|j)) {
				return
			}
		}
	}
}

func (s *nodes) add(family uint16, slot uint32) id {
	s.live++
	n := s.allocate()
	*s.at(n) = node{family: family, slot: slot, flags: live}
	return n
}

func (s *nodes) allocate() id {
	slot, fresh := s.spaces.allocate()
	if fresh {
		chunk := new([chunkSize]node)
		if i := int(slot >> chunkBits); i < len(s.chunks) {
			s.chunks[i] = chunk
		} else {
			s.chunks = append(s.chunks, chunk)
		}
	}
	return id(slot)
}

func (s *nodes) drop(n id) {
	*s.at(n) = node{}
	s.spaces.put(uint32(n))
	s.live--
}

// trim lets go of chunks without nodes, and returns how many there were.
func (s *nodes) trim() int {
	empty := s.spaces.trim()
	for _, chunk := range empty {
		s.chunks[chunk] = nil
	}
	return len(empty)
}
