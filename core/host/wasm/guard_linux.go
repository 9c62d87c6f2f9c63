package wasm

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// guard is a timer of the kernel that kills this process unless it is pushed on in time. It is for
// the case in which a module's endless loop has stopped the whole of Go's runtime: a garbage
// collection waits for every goroutine, and a module that does not call its host can't be made to
// stop. Then no goroutine could end the process any more. It counts processor time, as a loop uses
// it: a machine that is short of it ends nobody.
type guard struct {
	id int32
	ok bool
}

// event is the kernel's struct sigevent: value, signal, how to notify, and padding.
type event struct {
	value  uintptr
	signal int32
	notify int32
	_      [48]byte
}

func newGuard() *guard {
	g := &guard{}
	e := event{signal: int32(syscall.SIGKILL)}
	_, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_PROCESS_CPUTIME_ID, uintptr(unsafe.Pointer(&e)), uintptr(unsafe.Pointer(&g.id)))
	g.ok = errno == 0
	return g
}

// push sets the time that is left.
func (g *guard) push(left time.Duration) {
	if !g.ok {
		return
	}
	set := [2]unix.Timespec{{}, unix.NsecToTimespec(int64(left))}
	_, _, _ = unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(g.id), 0, uintptr(unsafe.Pointer(&set)), 0, 0, 0)
}

func (g *guard) stop() {
	if g.ok {
		_, _, _ = unix.Syscall(unix.SYS_TIMER_DELETE, uintptr(g.id), 0, 0)
	}
}
