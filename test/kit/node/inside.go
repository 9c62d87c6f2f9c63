package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideArg is the first argument of a test binary that is to become a process of a container.
const insideArg = "in-a-container"

// place says what a process finds around it.
type place struct {
	Host string // its name
	// Root is an empty folder, which becomes the process's root.
	Root string
	// Mounts: for each path in the container a file or folder of this machine.
	Mounts map[string]string
	// Dir is where it starts; empty: /.
	Dir  string
	Args []string
	UID  uint32
}

// inside becomes the process of a container, if this is to be one: it never returns then. The
// process has a mount and a UTS namespace of its own already.
func inside() {
	if len(os.Args) != 3 || os.Args[1] != insideArg {
		return
	}
	runtime.LockOSThread() // it is this thread that is to end with its parent
	var p place
	err := json.Unmarshal([]byte(os.Args[2]), &p)
	if err == nil {
		err = p.enter()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(127) // as a shell says that there is no such program
}

func (p place) enter() error {
	if err := unix.Sethostname([]byte(p.Host)); err != nil {
		return fmt.Errorf("its host name: %w", err)
	}
	if err := p.root(); err != nil {
		return fmt.Errorf("its files: %w", err)
	}
	if err := unix.Chroot(p.Root); err != nil {
		return err
	}
	dir := p.Dir
	if dir == "" {
		dir = "/"
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	program, err := exec.LookPath(p.Args[0])
	if err != nil {
		return err
	}
	if p.UID != 0 {
		if err := syscall.Setgroups(nil); err != nil {
			return err
		}
		if err := syscall.Setgid(int(p.UID)); err != nil {
			return err
		}
		if err := syscall.Setuid(int(p.UID)); err != nil {
			return err
		}
	}
	// Another user's process has forgotten this.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	return syscall.Exec(program, p.Args, os.Environ())
}

// root makes the root: everything that this machine has, and the mounts.
func (p place) root() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", p.Root, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	if err := unix.Mount("", p.Root, "", unix.MS_UNBINDABLE, ""); err != nil { // it isn't part of what is bound into it
		return err
	}
	top := &spot{}
	for path, from := range p.Mounts {
		path, err := resolve(path)
		if err != nil {
			return err
		}
		s := top
		for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			if s.inside == nil {
				s.inside = map[string]*spot{}
			}
			if s.inside[part] == nil {
				s.inside[part] = &spot{}
			}
			s = s.inside[part]
		}
		s.from = from
	}
	return top.fill("/", p.Root)
}

// resolve follows symbolic links of this machine as far as a path is there.
func resolve(path string) (string, error) {
	path = filepath.Clean("/" + path)
	rest := ""
	for at := path; at != "/"; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
	return path, nil
}

// spot is a place of the root at which, or below which, something is mounted.
type spot struct {
	from   string
	inside map[string]*spot
}

// fill makes at a folder what this machine has at another, and the spots.
func (s *spot) fill(machine, at string) error {
	entries, err := os.ReadDir(machine)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		from, to := filepath.Join(machine, e.Name()), filepath.Join(at, e.Name())
		switch {
		case s.inside[e.Name()] != nil:
		case e.Type()&os.ModeSymlink != 0:
			if target, err := os.Readlink(from); err == nil {
				_ = os.Symlink(target, to)
			}
		default:
			_ = bind(from, to) // what can't be bound isn't there
		}
	}
	for part, child := range s.inside {
		to := filepath.Join(at, part)
		if child.from == "" {
			if err := os.MkdirAll(to, 0o755); err != nil {
				return err
			}
			if err := child.fill(filepath.Join(machine, part), to); err != nil {
				return err
			}
			continue
		}
		if err := bind(child.from, to); err != nil {
			return fmt.Errorf("%s: %w", to, err)
		}
		for name, deeper := range child.inside {
			if err := (&spot{inside: map[string]*spot{name: deeper}}).fill("/nowhere", to); err != nil {
				return err
			}
		}
	}
	return nil
}

// bind lets a file or folder be at another path, too.
func bind(from, to string) error {
	is, err := os.Stat(from)
	if err != nil {
		return err
	}
	if is.IsDir() {
		err = os.MkdirAll(to, 0o755)
	} else {
		var f *os.File
		if f, err = os.OpenFile(to, os.O_CREATE, 0o644); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		return err
	}
	return unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
}
