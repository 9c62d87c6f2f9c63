package sum

import (
	"crypto/sha256"
	"testing"
)

func TestSum(t *testing.T) {
	s := New()
	text := make([]byte, 300)
	for n := range text {
		text[n] = byte(n * 7)
		if got, want := s.Sum(text[:n]), sha256.Sum256(text[:n]); got != want {
			t.Fatalf("%d bytes: got %x, want %x", n, got, want)
		}
	}
}
