package sched

import (
	"os"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

func TestReadOfOneself(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		need.Missing(t, "this kernel keeps no /proc/PID/schedstat: run one with CONFIG_SCHED_INFO")
	}
	before, ok := Read(os.Getpid())
	if !ok {
		t.Fatal("the kernel says it, and it is not read")
	}
	for now := before; now.Ran <= before.Ran; now, _ = Read(os.Getpid()) {
	}
}
