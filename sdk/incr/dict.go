package incr

import (
	"hash/maphash"
	"unsafe"
)

// dict gives keys numbers, from 1 on, which are used again.
type dict struct {
	kind  kind
	seed  maphash.Seed
	cells slab
	ids   table
}

func newDict(k kind) dict {
	return dict{kind: k, seed: maphash.MakeSeed(), cells: newSlab(k.typ)}
}

func (d *dict) at(n id) unsafe.Pointer { return d.cells.at(uint32(n) - 1) }

func (d *dict) hash(key unsafe.Pointer) uint64 { return d.kind.hash(d.seed, key) }

func (d *dict) hashOf(n id) uint64 { return d.hash(d.at(n)) }

// find returns the number of a key, 0 if it has none.
func (d *dict) find(key unsafe.Pointer) id {
	return d.ids.find(d.hash(key), func(n id) bool { return d.kind.equal(d.at(n), key) })
}

// intern returns the number of a key, a new one where it has none.
func (d *dict) intern(key unsafe.Pointer) id {
	if n := d.find(key); n != 0 {
		return n
	}
	n := id(d.cells.allocate() + 1)
	d.kind.copy(d.at(n), key)
	d.ids.add(d.hash(key), n, d.hashOf)
	return n
}

func (d *dict) drop(n id) {
	d.ids.remove(d.hashOf(n), n, d.hashOf)
	d.cells.drop(uint32(n) - 1)
}

func (d *dict) forget() { *d = newDict(d.kind) }
