package incr

// slab keeps cells of one type; cells don't move, slots are used again.
type slab[T any] struct {
	chunks [][]T
	next   uint32
	free   []uint32
}

const slabBits = 6

func (s *slab[T]) at(slot uint32) *T { return &s.chunks[slot>>slabBits][slot&(1<<slabBits-1)] }

func (s *slab[T]) add(cell T) uint32 {
	slot := s.take()
	*s.at(slot) = cell
	return slot
}

func (s *slab[T]) take() uint32 {
	if last := len(s.free) - 1; last >= 0 {
		slot := s.free[last]
		s.free = s.free[:last]
		return slot
	}
	slot := s.next
	s.next++
	if int(slot>>slabBits) >= len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, 1<<slabBits))
	}
	return slot
}

func (s *slab[T]) drop(slot uint32) {
	var zero T
	*s.at(slot) = zero
	s.free = append(s.free, slot)
}
