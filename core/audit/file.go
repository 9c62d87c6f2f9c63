package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// mostBytes is how large the file becomes before it is put aside, as FILE.1; the one before that
// goes.
const mostBytes = 64 << 20

// file is opened for each line: changes are rare, and whoever moves or removes it, as logrotate
// does, need not tell anybody.
type file struct {
	path string
	most int64
}

// append writes a line and returns when the disk has it. A line that is written in part is taken
// back.
func (f *file) append(line []byte) (err error) {
	if err := f.rotate(int64(len(line))); err != nil {
		return err
	}
	to, info, err := f.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if len(line) == 0 {
		return nil
	}
	if n, err := to.Write(line); err != nil {
		if n > 0 {
			err = errors.Join(err, to.Truncate(info.Size()))
		}
		return err
	}
	return to.Sync()
}

// open opens the file, which is made if it is not there.
func (f *file) open() (*os.File, os.FileInfo, error) {
	// Whatever waits for a reader is no file: opening it must not wait.
	to, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, nil, err
	}
	info, err := to.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", f.path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, to.Close())
	}
	return to, info, nil
}

// room is how many bytes the disk must have for an action to be written down.
const room = 64 << 10

// ready reports why a line can't be written now.
func (f *file) ready() (err error) {
	if err := f.rotate(room); err != nil {
		return err
	}
	to, info, err := f.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	return reserve(to, info.Size(), room)
}

// rotate puts a file aside that would become too large.
func (f *file) rotate(more int64) error {
	info, err := os.Lstat(f.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || info.Size()+more <= f.most) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Rename(f.path, f.path+".1")
}
