//go:build !linux

package host

import (
	"fmt"
	"os"
	"path/filepath"
)

// pin returns a path that executes the bytes that were hashed: a private copy, good until release.
func pin(path string, want Digest) (exec string, release func(), err error) {
	dir, err := os.MkdirTemp("", "coxswain-pin-")
	if err != nil {
		return "", nil, err
	}
	release = func() { os.RemoveAll(dir) }
	exec = filepath.Join(dir, filepath.Base(path))
	to, err := os.OpenFile(exec, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err == nil {
		err = copyPinned(to, path, want)
		if closed := to.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		release()
		return "", nil, fmt.Errorf("a private copy of %s: %w", path, err)
	}
	return exec, release, nil
}
