package sched

import (
	"os"
	"testing"
)

func TestReadOfOneself(t *testing.T) {
	before, ok := Read(os.Getpid())
	if !ok {
		t.Skip("this kernel keeps no /proc/PID/schedstat")
	}
	for now := before; now.Ran <= before.Ran; now, _ = Read(os.Getpid()) {
	}
}
