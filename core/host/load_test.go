package host

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestCPUSeconds: what a process has used in its own code and in the kernel counts.
func TestCPUSeconds(t *testing.T) {
	used := func() (user, system float64) {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano()).Seconds(), time.Duration(u.Stime.Nano()).Seconds()
	}
	user, system := used()
	for sum := 0; user < system+0.2; user, system = used() { // so that either of the two, counted twice, would show
		for i := range 1_000_000 {
			sum += i * sum
		}
	}
	got := cpuSeconds(os.Getpid())
	nowUser, nowSystem := used()
	const tick = 0.02 // each of the two is cut to a hundredth
	if least, most := user+system-tick, nowUser+nowSystem+tick; got < least || got > most {
		t.Errorf("%f s, not between %f and %f", got, least, most)
	}
}
