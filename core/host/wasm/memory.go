package wasm

import (
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// reserve makes a module's memory outside of Go's heap: address space for all that it may ever
// have, of which the system gives pages as they are touched. So growing copies nothing, the garbage
// collector never counts it, and it is given back when the instance is closed.
func reserve(capacity, most uint64) experimental.LinearMemory {
	space, err := unix.Mmap(-1, 0, int(most), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return &heapMemory{most: most}
	}
	return &reserved{space: space}
}

type reserved struct{ space []byte }

func (r *reserved) Reallocate(size uint64) []byte {
	if size > uint64(len(r.space)) {
		return nil
	}
	return r.space[:size]
}

func (r *reserved) Free() {
	_ = unix.Munmap(r.space)
	r.space = nil
}

// heapMemory is for systems that don't give so much address space.
type heapMemory struct {
	bytes []byte
	most  uint64
}

func (h *heapMemory) Reallocate(size uint64) []byte {
	if size > h.most {
		return nil
	}
	if more := int(size) - len(h.bytes); more > 0 {
		h.bytes = append(h.bytes, make([]byte, more)...)
	}
	return h.bytes[:size]
}

func (h *heapMemory) Free() { h.bytes = nil }
