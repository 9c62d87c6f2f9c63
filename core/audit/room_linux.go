package audit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve has the disk keep room behind the end of a file (fallocate(2)), whose length stays. Where
// a filesystem knows no such thing it is not asked.
func reserve(f *os.File, end, bytes int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, end, bytes)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "reserve room", Path: f.Name(), Err: err}
	}
	return nil
}
