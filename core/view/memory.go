package view

// memory is bytes that bodies share, an edit with what it is an edit of: all of it is there as long
// as one of them has some of it.
type memory struct{ size, users int }

// hold makes a body one of the users of these memories, one for each of its runs, instead of those
// that it used.
func (vs *Views) hold(s *stored, next []*memory) {
	for _, m := range next {
		if m.users++; m.users == 1 {
			vs.held += m.size
		}
	}
	for _, m := range s.mem {
		if m.users--; m.users == 0 {
			vs.held -= m.size
		}
	}
	s.mem = next
}

// holdCopy makes a body the user of bytes of its own.
func (vs *Views) holdCopy(s *stored, size int) { vs.hold(s, []*memory{{size: size}}) }

// grow notes that some more of what is new in a body has come.
func (vs *Views) grow(s *stored, size int) {
	s.fresh.size += size
	vs.held += size
}

// Held returns how many bytes the session's bodies take, each counted once however many bodies
// share it, as long as the plugin has not been told that they are free and has read that.
func (vs *Views) Held() int { return vs.held }
