package sandbox

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrNoLandlock is that the kernel can't hold a process to files.
var ErrNoLandlock = errors.New("the kernel has no Landlock (Linux 5.13, enabled in lsm=), which `sandbox.read` and `sandbox.write` need; " +
	"take them out, or run on a kernel that has it")

// ruleset is the kernel's struct landlock_ruleset_attr.
type ruleset struct{ files, net, scoped uint64 }

// beneath is its struct landlock_path_beneath_attr, which is packed.
type beneath struct {
	access [8]byte
	parent int32
}

const (
	reading = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// nodes are device nodes, which no plugin makes: Landlock wants at least one thing to forbid.
	nodes   = unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR
	writing = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	// single are the rights that mean something for a file that is no directory.
	single = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// system is what programs read that do nothing but run: programs, libraries, settings, and what the
// kernel tells. Other processes' secrets are not in it: Landlock closes /proc/PID of whoever is
// outside.
func system() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/proc", "/sys",
		"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
}

// restrict puts the thread into a Landlock domain (landlock(7)): whatever else it holds it to, it
// may not look into, trace or, from Linux 6.12 on, signal processes that are not in it, not even as
// root.
func restrict(rules Rules, report *Report) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		if rules.Files {
			return ErrNoLandlock
		}
		report.note(errors.New("the kernel has no Landlock (Linux 5.13, enabled in lsm=)"), "look into another process (Landlock)")
		return nil
	}
	set := ruleset{files: nodes}
	if rules.Files {
		set.files |= writing
		if version >= 2 {
			set.files |= unix.LANDLOCK_ACCESS_FS_REFER
		}
		if version >= 3 {
			set.files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		}
		if !rules.ReadAll {
			set.files |= reading
		}
	}
	size := uintptr(8)
	signals := version >= 6 && signalsItself()
	if signals {
		set.scoped, size = unix.LANDLOCK_SCOPE_SIGNAL, unsafe.Sizeof(set)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&set)), size, 0)
	if errno != 0 {
		return fmt.Errorf("with Landlock: %w", errno)
	}
	defer unix.Close(int(fd))
	if err := allow(int(fd), set.files, rules); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		if rules.Files {
			return fmt.Errorf("with Landlock: %w", errno)
		}
		report.note(errno, "look into another process (Landlock)")
		return nil
	}
	report.note(nil, "look into a process that it hasn't started (Landlock)")
	if signals {
		report.note(nil, "signal a process that it hasn't started (Landlock)")
	} else {
		report.note(errors.New("the kernel's Landlock has no scopes for signals that are right (Linux 6.12 and later)"), "signal another process (Landlock)")
	}
	switch {
	case rules.Files && rules.ReadAll:
		report.note(nil, fmt.Sprintf("write anything but what sandbox.write names: %q (Landlock)", rules.Write))
	case rules.Files:
		report.note(nil, fmt.Sprintf("read anything but what sandbox.read names, and the system's programs, libraries and settings: %q (Landlock)", rules.Read))
		report.note(nil, fmt.Sprintf("write anything but what sandbox.write names: %q (Landlock)", rules.Write))
	}
	return nil
}

// signalsItself reports whether threads in a domain may signal those of their own process that are
// not: Go's scheduler does. The second erratum says so.
func signalsItself() bool {
	errata, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_ERRATA)
	return errno == 0 && errata&2 != 0
}

// allow adds what the rules grant.
func allow(set int, handled uint64, rules Rules) error {
	if !rules.Files {
		return nil
	}
	const devices = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	for _, group := range []struct {
		paths  []string
		access uint64
		must   bool
	}{
		{system(), reading, false},
		{[]string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"}, devices, false},
		{rules.Programs, reading, true},
		{rules.Read, reading, true},
		{rules.Write, handled &^ unix.LANDLOCK_ACCESS_FS_EXECUTE, true},
		{rules.Own, handled, true},
	} {
		for _, path := range group.paths {
			if err := grant(set, path, group.access&handled); err != nil && (group.must || !errors.Is(err, os.ErrNotExist)) {
				return fmt.Errorf("sandbox: %s: %w", path, err)
			}
		}
	}
	return nil
}

func grant(set int, path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= single
	}
	if access == 0 {
		return nil
	}
	rule := beneath{parent: int32(fd)}
	*(*uint64)(unsafe.Pointer(&rule.access)) = access
	const byPath = 1
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), byPath, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
