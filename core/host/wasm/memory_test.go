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
