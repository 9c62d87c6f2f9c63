package sched

import (
	"os"
	"testing"
)

func TestReadOfOneself(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("this kernel keeps no /proc/PID/schedstat")
	}
	before, ok := Read(os.Getpid())
	if !ok {
		t.Fatal("the kernel says it, and it is not read")
	}
	for now := before; now.Ran <= before.Ran; now, _ = Read(os.Getpid()) {
	}
}
