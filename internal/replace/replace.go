// Package replace writes files whole.
package replace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// File puts a file with a text and a mode into the place of what is at a path, if anything is: who
// opens the path gets the old text or the new one. The text is on disk before (fsync). A symbolic
// link is itself replaced. last, unless it is nil, is called with the new file right before it
// takes its place. An error, last's too, leaves all as it was.
func File(path string, text []byte, mode fs.FileMode, last func(next *os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // once it has taken its place there is none
	if last == nil {
		last = func(*os.File) error { return nil }
	}
	_, err = f.Write(text)
	if err == nil {
		err = errors.Join(f.Chmod(mode), last(f), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
