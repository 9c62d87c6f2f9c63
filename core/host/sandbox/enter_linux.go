package sandbox

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// Hide keeps this process's memory, environment and descriptors from others of its user
// (PR_SET_DUMPABLE), and its memory and that of what it starts out of core dumps: RLIMIT_CORE is 0,
// and where core_pattern is a pipe, for which that doesn't count, no memory is dumped
// (coredump_filter). Both are inherited. Source: Linux, core(5).
func Hide() error {
	filter := os.WriteFile("/proc/self/coredump_filter", []byte("0"), 0) // which is root's once the process is not dumpable
	return errors.Join(filter, unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

// OnThread runs do on a thread that ends with it, never the process's first: what Enter takes from
// the thread is gone for good, and the kernel shows the first thread as the process.
func OnThread(do func()) {
	go func() {
		runtime.LockOSThread() // And never unlocked: Go ends the thread with the goroutine.
		if unix.Gettid() != os.Getpid() {
			do()
			return
		}
		ended := make(chan struct{})
		go func() { // The first thread is held until another one has been found.
			runtime.LockOSThread()
			close(ended)
			do()
		}()
		<-ended
		runtime.UnlockOSThread()
	}()
}

// Enter takes what the rules say from the calling thread and all that it starts. It is for
// OnThread. The error is for what plugins.yaml asks for and the kernel can't do; what is taken by
// default and can't be is in the report.
func Enter(rules Rules) (report Report, err error) {
	if rules.Unconfined {
		report.Lacking = []string{"sandbox.unconfined is set"}
		return report, nil
	}
	privileges := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	report.note(privileges, "gain privileges by what it executes (no_new_privs)")
	if os.Geteuid() == 0 {
		report.note(dropCapabilities(), "look into other processes or the kernel as root may (capabilities)")
	}
	if err := restrict(rules, &report); err != nil {
		return report, err
	}
	report.note(filter(), "trace processes, load code into the kernel, or signal the core (seccomp)")
	return report, nil
}

// dropCapabilities takes from root's plugins what makes the kernel open other processes' memory and
// environment to them, and the kernel's own: CAP_SYS_ADMIN is enough for the environment
// (may_access_mm in Linux's kernel/fork.c).
func dropCapabilities() error {
	for _, c := range []uintptr{
		unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_BOOT, unix.CAP_PERFMON, unix.CAP_BPF,
		unix.CAP_CHECKPOINT_RESTORE, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE,
	} {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err != nil && err != unix.EINVAL { // which an older kernel has not
			return err
		}
	}
	return nil
}
