package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// pin returns a path that executes exactly the bytes that were hashed, whatever becomes of the file: a sealed copy in memory. The
// path is good until release.
func pin(path string, want Digest) (exec string, release func(), err error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	// A child that another goroutine forks now would hold the copy open for writing, and nobody could execute it.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	name := filepath.Base(path)
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return "", nil, fmt.Errorf("a copy of %s in memory: %w", path, err)
	}
	// Only open for reading may it be executed, so the one that wrote is not the one that stays.
	written := os.NewFile(uintptr(fd), name)
	defer written.Close()
	if err := copyPinned(written, path, want); err != nil {
		return "", nil, err
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(written.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return "", nil, fmt.Errorf("sealing the copy of %s: %w", path, err)
	}
	sealed, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", nil, fmt.Errorf("the copy of %s: %w", path, err)
	}
	exec = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), sealed.Fd())
	return exec, func() { sealed.Close() }, nil
}
