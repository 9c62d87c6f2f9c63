//go:build !linux

package host

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// pin returns the bytes that were hashed: a private copy, good until release.
func pin(path string, want manifest.Digest) (loaded, error) {
	dir, err := os.MkdirTemp("", "coxswain-pin-")
	if err != nil {
		return loaded{}, err
	}
	is := loaded{path: filepath.Join(dir, filepath.Base(path)), release: func() { os.RemoveAll(dir) }}
	to, err := os.OpenFile(is.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err == nil {
		err = copyPinned(to, path, want)
		if closed := to.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		is.release()
		return loaded{}, fmt.Errorf("a private copy of %s: %w", path, err)
	}
	return is, nil
}

// opened is a file by its path: only Linux hands open files on by a path.
func opened(path string) (loaded, error) { return loaded{path: path, release: func() {}}, nil }

// openProgram opens nothing here: built-ins are run by the program's path.
func openProgram(string) *os.File { return nil }
