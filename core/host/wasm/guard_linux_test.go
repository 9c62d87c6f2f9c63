package wasm

import (
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestGuardKills: the kernel ends a process that does not push its guard on, whatever its
// goroutines do.
func TestGuardKills(t *testing.T) {
	if os.Getenv("GUARDED") != "" {
		newGuard().push(50 * time.Millisecond)
		for spun := new(atomic.Uint64); ; {
			spun.Add(1)
		}
	}
	guarded := exec.Command(os.Args[0], "-test.run=^TestGuardKills$", "-test.timeout=50s")
	guarded.Env = append(os.Environ(), "GUARDED=1")
	var exit *exec.ExitError
	if err := guarded.Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", err)
	}
}
