package wasm

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// An instance may be interrupted anywhere while it begins to wait for time; it wakes all the same.
func TestEachWaitForTimeEnds(t *testing.T) {
	stop := make(chan struct{})
	var busy, waiting sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					runtime.GC()
				}
			}
		})
	}
	for range 64 {
		waiting.Go(func() {
			i := &instance{stdio: newStdio(nil)}
			for range 2000 {
				i.await(&wish{timed: true, after: time.Microsecond})
			}
		})
	}
	waiting.Wait()
	close(stop)
	busy.Wait()
}
