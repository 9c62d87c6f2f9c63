//go:build !wasip1 && !smallcodec

package proto

import "google.golang.org/protobuf/encoding/protowire"

// What the generated code appends fields with. Like cursor's methods these are never inlined, for
// the size of WASM modules.

//go:noinline
func addVarint(b []byte, tag, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendVarint(b, tag), v)
}

//go:noinline
func addString(b []byte, tag uint64, v string) []byte {
	return append(addVarint(b, tag, uint64(len(v))), v...)
}

//go:noinline
func addBytes(b []byte, tag uint64, v []byte) []byte {
	return append(addVarint(b, tag, uint64(len(v))), v...)
}

//go:noinline
func addFixed64(b []byte, tag, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendVarint(b, tag), v)
}
