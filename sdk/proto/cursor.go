//go:build !wasip1 && !smallcodec

package proto

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// cursor reads an encoded message, for the generated code. Its methods are never inlined, since
// each field has a call of one, and WASM modules should be small. After an error there is nothing
// more to read, and values are zero.
type cursor struct {
	b   []byte
	tag uint64
	err error
}

// more reports whether anything is left.
func (c *cursor) more() bool { return len(c.b) > 0 && c.err == nil }

// next reads the tag of the next field, if there is one.
//
//go:noinline
func (c *cursor) next() bool {
	if !c.more() {
		return false
	}
	num, typ, n := protowire.ConsumeTag(c.b)
	c.tag = protowire.EncodeTag(num, typ)
	return c.skip(n)
}

// skip goes on by n bytes; less than 0 is an error of protowire.
func (c *cursor) skip(n int) bool {
	if n < 0 {
		c.fail(protowire.ParseError(n))
		return false
	}
	c.b = c.b[n:]
	return true
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// unknown skips the value of a field.
//
//go:noinline
func (c *cursor) unknown() {
	num, typ := protowire.DecodeTag(c.tag)
	c.skip(protowire.ConsumeFieldValue(num, typ, c.b))
}

//go:noinline
func (c *cursor) varint() uint64 {
	v, n := protowire.ConsumeVarint(c.b)
	c.skip(n)
	return v
}

//go:noinline
func (c *cursor) bool() bool { return c.varint() != 0 }

func (c *cursor) fixed64() uint64 {
	v, n := protowire.ConsumeFixed64(c.b)
	c.skip(n)
	return v
}

func (c *cursor) double() float64 { return math.Float64frombits(c.fixed64()) }

// raw bytes are part of what is read.
//
//go:noinline
func (c *cursor) raw() []byte {
	v, n := protowire.ConsumeBytes(c.b)
	c.skip(n)
	return v
}

//go:noinline
func (c *cursor) bytes() []byte { return append([]byte(nil), c.raw()...) }

//go:noinline
func (c *cursor) string() string { return string(c.raw()) }

//go:noinline
func (c *cursor) message(m interface{ Unmarshal([]byte) error }) {
	if v := c.raw(); c.err == nil {
		c.fail(m.Unmarshal(v))
	}
}
