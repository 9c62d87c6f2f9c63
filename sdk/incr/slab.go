package incr

import (
	"reflect"
	"unsafe"
)

// slab keeps cells of one type, of which only pointers are known; cells don't move, slots are used
// again.
type slab struct {
	cell   reflect.Type
	chunk  reflect.Type
	size   uintptr
	chunks []unsafe.Pointer
	spaces spaces
}

const slabBits = 6

func newSlab(cell reflect.Type) slab {
	return slab{cell: cell, chunk: reflect.ArrayOf(1<<slabBits, cell), size: cell.Size(), spaces: spaces{bits: slabBits}}
}

func (s *slab) at(slot uint32) unsafe.Pointer {
	return unsafe.Add(s.chunks[slot>>slabBits], uintptr(slot&(1<<slabBits-1))*s.size)
}

// allocate returns the slot of an empty cell.
func (s *slab) allocate() uint32 {
	slot, fresh := s.spaces.allocate()
	if fresh {
		chunk := reflect.New(s.chunk).UnsafePointer()
		if i := int(slot >> slabBits); i < len(s.chunks) {
			s.chunks[i] = chunk
		} else {
			s.chunks = append(s.chunks, chunk)
		}
	}
	return slot
}

func (s *slab) drop(slot uint32) {
	erase(s.cell, s.at(slot))
	s.spaces.put(slot)
}

// trim lets go of chunks without cells, and returns how many there were.
func (s *slab) trim() int {
	empty := s.spaces.trim()
	for _, chunk := range empty {
		s.chunks[chunk] = nil
	}
	return len(empty)
}

// erase makes what is at a place the zero value of its type.
func erase(t reflect.Type, at unsafe.Pointer) { reflect.NewAt(t, at).Elem().SetZero() }
