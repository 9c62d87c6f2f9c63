package connections

// Extensions are lists of Envoy extensions that nodes share. A list goes with the last connection
// that has it, at both ends of the session: clients can make any number of them.
type Extensions struct {
	lists map[uint64][]string
	users map[uint64]int
	// of is the list that a connection has.
	of map[uint64]uint64
}

// NewExtensions returns none.
func NewExtensions() Extensions {
	return Extensions{lists: map[uint64][]string{}, users: map[uint64]int{}, of: map[uint64]uint64{}}
}

// Attach returns a connection's list; 0 is none.
func (x *Extensions) Attach(connection, id uint64) []string {
	if _, again := x.of[connection]; !again && id != 0 {
		x.of[connection] = id
		x.users[id]++
	}
	return x.lists[id]
}

// Add notes a list under its number.
func (x *Extensions) Add(id uint64, names []string) { x.lists[id] = names }

// Detach forgets what a connection had.
func (x *Extensions) Detach(connection uint64) {
	id, ok := x.of[connection]
	if !ok {
		return
	}
	delete(x.of, connection)
	if x.users[id]--; x.users[id] == 0 {
		delete(x.users, id)
		delete(x.lists, id)
	}
}
