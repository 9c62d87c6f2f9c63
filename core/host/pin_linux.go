package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"golang.org/x/sys/unix"
)

// pin returns exactly the bytes that were hashed, whatever becomes of the file: a sealed copy in
// memory.
func pin(path string, want manifest.Digest) (loaded, error) {
	sealed, err := seal(path, want)
	if err != nil {
		return loaded{}, err
	}
	return loaded{path: path, file: sealed, release: func() { sealed.Close() }}, nil
}

// opened is a file as it is now, whatever is at its path later.
func opened(path string) (loaded, error) {
	f, err := os.Open(path)
	if err != nil {
		return loaded{}, err
	}
	return loaded{path: path, file: f, release: func() { f.Close() }}, nil
}

// openProgram opens the program that built-ins run: if that is this one, then the very file that
// runs, though its path may lead to another by now.
func openProgram(exe string) *os.File {
	if own, err := os.Executable(); err == nil && own == exe {
		exe = "/proc/self/exe"
	}
	f, err := os.Open(exe)
	if err != nil {
		return nil // Starting says why.
	}
	return f
}

// seal copies a file into memory, checks its hash, and lets nobody write to the copy any more.
func seal(path string, want manifest.Digest) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	// A child that another goroutine forks now would hold the copy open for writing, and nobody
	// could execute it.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	name := filepath.Base(path)
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("a copy of %s in memory: %w", path, err)
	}
	// Only open for reading may it be executed, so the one that wrote is not the one that stays.
	written := os.NewFile(uintptr(fd), name)
	defer written.Close()
	if err := copyPinned(written, path, want); err != nil {
		return nil, err
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(written.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("sealing the copy of %s: %w", path, err)
	}
	sealed, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, fmt.Errorf("the copy of %s: %w", path, err)
	}
	return sealed, nil
}
