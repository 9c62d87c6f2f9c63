package view

// memory is bytes that bodies share, an edit with what it is an edit of: all of it is there as long
// as one of them has some of it.
type memory struct{ size, users int }

// hold makes a body one of the users of these memories, one for each of its runs, instead of those
// that it used.
func (bs *Bodies) hold(s *stored, next []*memory) {
	for _, m := range next {
		if m.users++; m.users == 1 {
			bs.held += m.size
		}
	}
	for _, m := range s.mem {
		if m.users--; m.users == 0 {
			bs.held -= m.size
		}
	}
	s.mem = next
}

// holdCopy makes a body the user of bytes of its own.
func (bs *Bodies) holdCopy(s *stored, size int) { bs.hold(s, []*memory{{size: size}}) }

// grow notes that some more of what is new in a body has come.
func (bs *Bodies) grow(s *stored, size int) {
	s.fresh.size += size
	bs.held += size
}

// Held returns how many bytes the session's bodies take, each counted once however many bodies
// share it, as long as the plugin has not been told that they are free and has read that.
func (bs *Bodies) Held() int { return bs.held }
