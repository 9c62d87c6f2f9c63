package wasm

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
)

// A guest that takes ever more memory ends at its limit, not beyond it.
func TestLimitOfMemory(t *testing.T) {
	err := mode(spawn, t, "grow", spec.Grants{}).result()
	if err == nil {
		t.Fatal("it goes on")
	}
	m := regexp.MustCompile(`it had used (\d+) of the 64 MiB of memory that it may have \(wasm\.memory\)`).FindStringSubmatch(err.Error())
	if m == nil {
		t.Fatalf("got %v", err)
	}
	if used, _ := strconv.Atoi(m[1]); used < 32 || used > 64 {
		t.Errorf("it had used %d MiB of 64", used)
	}
}

// TestHeapMemory: a memory grows up to what it may have, keeps what it holds, and no further.
func TestHeapMemory(t *testing.T) {
	h := &heapMemory{most: 4}
	b := h.Reallocate(2)
	if len(b) != 2 {
		t.Fatalf("%d bytes", len(b))
	}
	b[1] = 7
	if b = h.Reallocate(4); len(b) != 4 || b[1] != 7 {
		t.Errorf("%v", b)
	}
	if b = h.Reallocate(5); b != nil {
		t.Errorf("%d bytes of 4", len(b))
	}
	h.Free()
}
