package sandbox

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls are the numbers of system calls, of one of the kernel's interfaces, that a plugin is
// refused: always, or if they are aimed at the core.
type calls struct {
	arch   uint32
	always []uint32
	// core have the process's number as their first argument; thread too, and as the third the
	// signal, of which Go's own is let through.
	core, thread []uint32
}

// The kernel's struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// filter refuses (EPERM) what looks into other processes or changes the kernel, with seccomp(2);
// and signals to the core, where Landlock can't.
//
// It is written here and not with a library, because the libraries compare whole 64-bit arguments,
// of which the kernel looks at the lower half for a process's number, and let 32-bit system calls
// pass.
func filter() error {
	all := interfaces()
	if len(all) == 0 {
		return errors.New("the numbers of this machine's system calls are not known")
	}
	program := assemble(all, uint32(os.Getpid()), uint32(unix.Gettid()))
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

const (
	load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	give    = unix.BPF_RET | unix.BPF_K

	refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	pass    = unix.SECCOMP_RET_ALLOW
)

// assemble writes the filter: for each interface a block that ends with a verdict. pid is the
// core's, tid the thread's that starts the plugin, which is in the plugin's domain. Calls of an
// interface that isn't listed don't exist.
func assemble(all []calls, pid, tid uint32) []unix.SockFilter {
	program := []unix.SockFilter{{Code: load, K: offArch}}
	for _, c := range all {
		block := c.block(pid, tid)
		program = append(program, unix.SockFilter{Code: equal, Jt: 1, K: c.arch},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(block))})
		program = append(program, block...)
	}
	return append(program, unix.SockFilter{Code: give, K: unknown})
}

func (c calls) block(pid, tid uint32) []unix.SockFilter {
	b := []unix.SockFilter{{Code: load, K: offNumber}}
	if c.arch == unix.AUDIT_ARCH_X86_64 { // x32 is an interface of its own under the same name
		const x32 = 0x40000000
		b = append(b, unix.SockFilter{Code: atLeast, Jf: 1, K: x32}, unix.SockFilter{Code: give, K: unknown})
	}
	for _, n := range c.always {
		b = append(b, unix.SockFilter{Code: equal, Jf: 1, K: n}, unix.SockFilter{Code: give, K: refuse})
	}
	for _, n := range c.core {
		b = append(b, unix.SockFilter{Code: equal, Jf: 5, K: n},
			unix.SockFilter{Code: load, K: offArgs},
			unix.SockFilter{Code: equal, Jt: 1, K: pid}, unix.SockFilter{Code: equal, Jf: 1, K: tid},
			unix.SockFilter{Code: give, K: refuse}, unix.SockFilter{Code: give, K: pass})
	}
	for _, n := range c.thread { // tgkill(process, thread, signal): Go's scheduler sends SIGURG between the core's own threads
		b = append(b, unix.SockFilter{Code: equal, Jf: 6, K: n},
			unix.SockFilter{Code: load, K: offArgs}, unix.SockFilter{Code: equal, Jf: 3, K: pid},
			unix.SockFilter{Code: load, K: offArgs + 16}, unix.SockFilter{Code: equal, Jt: 1, K: uint32(unix.SIGURG)},
			unix.SockFilter{Code: give, K: refuse}, unix.SockFilter{Code: give, K: pass})
	}
	return append(b, unix.SockFilter{Code: give, K: pass})
}

// native are the calls of the interface that this program uses itself.
func native(arch uint32, more ...uint32) calls {
	return calls{
		arch: arch,
		always: append([]uint32{
			unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
			unix.SYS_PERF_EVENT_OPEN, unix.SYS_BPF, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
			unix.SYS_REBOOT, unix.SYS_OPEN_BY_HANDLE_AT,
		}, more...),
		core:   []uint32{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN},
		thread: []uint32{unix.SYS_TGKILL},
	}
}
