package process

import "golang.org/x/sys/unix"

// confine sets the limits of a process (prlimit(2)): no core dumps, in which its secrets would be,
// and so many open files. There is none for its memory: RLIMIT_AS counts address space, of which
// Go's runtime and wazero reserve far more than they use; nor for the number of processes, which is
// counted for all of a user's.
func confine(pid int, files uint64) error {
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil); err != nil {
		return err
	}
	var now unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now); err != nil || files == 0 {
		return err
	}
	files = min(files, now.Max)
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files}, nil)
}
