// Package sum is SHA-256 (FIPS 180-4) in little code, for WASM plugins: the standard library's
// brings a self-tested module of half a megabyte with it.
package sum

import (
	"encoding/binary"
	"math/bits"
)

// primes returns the first n prime numbers.
func primes(n int) []uint64 {
	var all []uint64
	for c := uint64(2); len(all) < n; c++ {
		prime := true
		for _, p := range all {
			prime = prime && c%p != 0
		}
		if prime {
			all = append(all, c)
		}
	}
	return all
}

// fraction returns the first 32 bits of the fraction of the root of p: the square root for power 2,
// the cube root for power 3.
func fraction(p uint64, power int) uint32 {
	// The largest x with (x/2^32)^power <= p, by bits: x has at most 37.
	var x uint64
	for bit := 37; bit >= 0; bit-- {
		if next := x | 1<<bit; !exceeds(next, p, power) {
			x = next
		}
	}
	return uint32(x)
}

// exceeds reports whether x^power > p * 2^(32*power).
func exceeds(x, p uint64, power int) bool {
	hi, lo := bits.Mul64(x, x)
	if power == 2 {
		return hi > p || hi == p && lo > 0
	}
	// x^3 as three words against p * 2^96.
	midHi, low := bits.Mul64(lo, x)
	topHi, top := bits.Mul64(hi, x)
	mid, carry := bits.Add64(midHi, top, 0)
	high := topHi + carry
	limitHigh, limitMid := p>>32, p<<32
	switch {
	case high != limitHigh:
		return high > limitHigh
	case mid != limitMid:
		return mid > limitMid
	}
	return low > 0
}

// Summer computes sums; make it once.
type Summer struct {
	start [8]uint32
	round [64]uint32
}

// New computes the constants: the fractions of the roots of the first primes.
func New() *Summer {
	s := &Summer{}
	for i, p := range primes(64) {
		s.round[i] = fraction(p, 3)
		if i < 8 {
			s.start[i] = fraction(p, 2)
		}
	}
	return s
}

// Sum returns the SHA-256 of b.
func (s *Summer) Sum(b []byte) [32]byte {
	h := s.start
	whole := len(b) &^ 63
	for i := 0; i < whole; i += 64 {
		s.block(&h, b[i:i+64])
	}
	tail := append(append([]byte{}, b[whole:]...), 0x80)
	for len(tail)%64 != 56 {
		tail = append(tail, 0)
	}
	tail = binary.BigEndian.AppendUint64(tail, uint64(len(b))*8)
	for ; len(tail) > 0; tail = tail[64:] {
		s.block(&h, tail[:64])
	}
	var out [32]byte
	for i, v := range h {
		binary.BigEndian.PutUint32(out[4*i:], v)
	}
	return out
}

func (s *Summer) block(h *[8]uint32, p []byte) {
	var w [64]uint32
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(p[4*i:])
	}
	for i := 16; i < 64; i++ {
		a, b := w[i-15], w[i-2]
		w[i] = w[i-16] + (rotr(a, 7) ^ rotr(a, 18) ^ a>>3) + w[i-7] + (rotr(b, 17) ^ rotr(b, 19) ^ b>>10)
	}
	v := *h
	for i := range 64 {
		a, e := v[0], v[4]
		t1 := v[7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + (e&v[5] ^ ^e&v[6]) + s.round[i] + w[i]
		t2 := (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + (a&v[1] ^ a&v[2] ^ v[1]&v[2])
		v = [8]uint32{t1 + t2, a, v[1], v[2], v[3] + t1, e, v[5], v[6]}
	}
	for i := range h {
		h[i] += v[i]
	}
}

func rotr(x uint32, n int) uint32 { return bits.RotateLeft32(x, -n) }
