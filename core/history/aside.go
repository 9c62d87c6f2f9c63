package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// mostAside is how many files that were set aside are kept: the oldest go first.
const mostAside = 5

// damageOf is an error as damage; one that is not is of what a file says.
func damageOf(err error) *damage {
	if d := (*damage)(nil); errors.As(err, &d) {
		return d
	}
	return &damage{err: err}
}

// setAside renames what is at the history's path, and returns what it is called now.
func setAside(path string) (aside string, err error) {
	aside = path + ".broken-" + time.Now().UTC().Format("20060102-150405.000")
	if err := os.Rename(path, aside); err != nil {
		return "", err
	}
	all, _ := filepath.Glob(path + ".broken-*")
	slices.Sort(all)
	for len(all) > mostAside {
		_ = os.Remove(all[0]) // one that stays is no reason to go without a file
		all = all[1:]
	}
	return aside, nil
}

// anew makes an empty file in a directory, which is made if it is not there. What has its name is
// set aside, unless another control plane has it open, which the error says then.
func anew(dir string) (*file, error) {
	path := filepath.Join(dir, FileName)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return open(path)
	case err != nil:
		return nil, err
	}
	if info.Mode().IsRegular() && taken(path) {
		return nil, fmt.Errorf("%s: another control plane has it open; give each a stateDir of its own", path)
	}
	if _, err := setAside(path); err != nil {
		return nil, err
	}
	return open(path)
}

// taken reports whether somebody has locked a file, as bbolt does.
func taken(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
