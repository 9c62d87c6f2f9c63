package incr

import "slices"

// spaces hands out the slots of chunks and takes them back. A chunk has 1<<bits slots.
type spaces struct {
	bits uint
	free []uint32
	// holes are chunks before next that have no memory.
	holes []uint32
	next  uint32
}

// allocate returns a free slot, and whether its chunk must be made first.
func (s *spaces) allocate() (slot uint32, fresh bool) {
	if last := len(s.free) - 1; last >= 0 {
		slot, s.free = s.free[last], s.free[:last]
		return slot, false
	}
	if last := len(s.holes) - 1; last >= 0 {
		slot, s.holes = s.holes[last]<<s.bits, s.holes[:last]
		for other := slot + 1<<s.bits - 1; other > slot; other-- {
			s.free = append(s.free, other)
		}
		return slot, true
	}
	slot = s.next
	s.next++
	return slot, slot&(1<<s.bits-1) == 0
}

func (s *spaces) put(slot uint32) { s.free = append(s.free, slot) }

// trim forgets the slots of chunks of which none is in use, and returns these chunks: their memory
// may go.
func (s *spaces) trim() (chunks []uint32) {
	unused := make([]uint32, s.next>>s.bits)
	for _, slot := range s.free {
		if chunk := slot >> s.bits; int(chunk) < len(unused) { // the last chunk may not have been handed out whole
			unused[chunk]++
		}
	}
	whole := func(chunk uint32) bool { return int(chunk) < len(unused) && unused[chunk] == 1<<s.bits }
	for chunk := range uint32(len(unused)) {
		if whole(chunk) {
			chunks = append(chunks, chunk)
		}
	}
	if len(chunks) > 0 {
		s.free = slices.Clip(slices.DeleteFunc(slices.Clone(s.free), func(slot uint32) bool { return whole(slot >> s.bits) }))
		s.holes = append(s.holes, chunks...)
	}
	return chunks
}
