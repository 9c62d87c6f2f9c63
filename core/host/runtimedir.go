package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// runtimeDir is this core's private directory, BASE/PID-START: no other core has the name, and a
// later one can tell whether its owner still lives. A lock held on a file in it says the same
// across PID namespaces. Plugins' sockets are in directories in it.
type runtimeDir struct {
	path string

	mu   sync.Mutex
	lock *os.File
}

// longest is what the path of a socket adds to the directory; a socket's path has at most 107
// bytes.
const longest = len("/plugin-dir1234567890/plugin1234567890")

// openRuntimeDir makes the directory, after it has swept those of dead cores from the base.
func openRuntimeDir(base string) (*runtimeDir, error) {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, err
	}
	if err := trusted(base); err != nil {
		return nil, err
	}
	sweep(base)
	path, err := makeOwn(base)
	if err != nil {
		return nil, err
	}
	d := &runtimeDir{path: path}
	if len(path)+longest > 107 {
		d.remove()
		return nil, fmt.Errorf("%s is too long for sockets, by %d characters; choose a shorter one", base, len(path)+longest-107)
	}
	if d.lock, err = lock(path); err != nil {
		d.remove()
		return nil, err
	}
	return d, nil
}

// ensure makes the directory anew, if a cleaner of temporary files has taken it: without it no
// plugin could be started.
func (d *runtimeDir) ensure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := os.Stat(filepath.Join(d.path, "lock")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	if err := trusted(filepath.Dir(d.path)); err != nil {
		return err
	}
	held, err := lock(d.path)
	if err != nil {
		return err
	}
	_ = d.lock.Close()
	d.lock = held
	return nil
}

// makeOwn makes BASE/PID-START, or PID-START-N if this process has several.
func makeOwn(base string) (string, error) {
	name := fmt.Sprintf("%d-%s", os.Getpid(), cmp.Or(startTime(os.Getpid()), "0"))
	for n := 1; ; n++ {
		path := filepath.Join(base, name)
		if n > 1 {
			path = fmt.Sprintf("%s-%d", path, n)
		}
		err := os.Mkdir(path, 0o700)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return path, err
		}
	}
}

// trusted refuses a base in which others could exchange our directory.
func trusted(base string) error {
	info, err := os.Stat(base)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user; remove it or choose another", base)
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("others may write to %s (mode %v); chmod 700 it or choose another", base, info.Mode().Perm())
	}
	return nil
}

func (d *runtimeDir) remove() {
	_ = os.RemoveAll(d.path)
	if d.lock != nil {
		d.lock.Close()
	}
}

var ownPattern = regexp.MustCompile(`^([0-9]+)-([0-9a-z]+)(-[0-9]+)?$`)

// sweep removes directories whose core is dead. What can't be removed stays: it harms nobody.
func sweep(base string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, e := range entries {
		m := ownPattern.FindStringSubmatch(e.Name())
		if m == nil || !e.IsDir() {
			continue
		}
		pid, err := strconv.Atoi(m[1])
		path := filepath.Join(base, e.Name())
		if err == nil && startTime(pid) != m[2] && !locked(path) {
			_ = os.RemoveAll(path)
		}
	}
}

// lock takes the lock that says that the directory's core lives. It ends with the process.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return f, nil
}

// locked reports whether a core holds the lock.
func locked(dir string) bool {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// startTime is when a process started, in the kernel's ticks, in base 36 because sockets' paths are
// short: with the PID it names a process for good. It is empty for one that isn't there.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may hold anything; 20 fields after it comes the start time.
	after := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const field = 22 - 3
	if len(after) <= field {
		return ""
	}
	ticks, err := strconv.ParseUint(after[field], 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatUint(ticks, 36)
}
