package family

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of all orphans below it (PR_SET_CHILD_SUBREAPER), so that
// nothing that a plugin starts gets out of sight.
func Adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// Collect waits for orphans that end, until ctx ends.
func (f *Family) Collect(ctx context.Context) {
	if !f.Alone {
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	const between = time.Second // Many end at once.
	for {
		select {
		case <-ended:
		case <-ctx.Done():
			return
		}
		f.reap(nil)
		select {
		case <-time.After(between):
		case <-ctx.Done():
			return
		}
	}
}

func ownPID() int { return os.Getpid() }

// process is what /proc says of one.
type process struct {
	pid, parent int
	zombie      bool
	// start tells it from a later process of that number.
	start string
}

// processes returns all that can be seen.
func processes() []process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	all := make([]process, 0, len(dirs))
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() {
			if p, ok := look(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// own returns this process's children. The kernel lists them where it was built to
// (CONFIG_PROC_CHILDREN).
func own() []process {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	if len(lists) == 0 {
		return processesOf(processes())
	}
	var all []process
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range bytes.Fields(text) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				if p, ok := look(pid); ok {
					all = append(all, p)
				}
			}
		}
	}
	return processesOf(all)
}

func processesOf(all []process) []process {
	var mine []process
	for _, p := range all {
		if p.parent == os.Getpid() {
			mine = append(mine, p)
		}
	}
	return mine
}

// look reads proc_pid_stat(5): after the name, in parentheses, which may hold anything, come the
// state, the parent, and as the 22nd field the start.
func look(pid int) (process, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	after := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const start = 22 - 3
	if len(after) <= start {
		return process{}, false
	}
	parent, err := strconv.Atoi(after[1])
	return process{pid, parent, after[0] == "Z" || after[0] == "X", after[start]}, err == nil
}

// mark of a process, empty if it has none or may not be asked.
func (p process) mark() string {
	environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
	for pair := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(pair, []byte(Env+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// here reports whether a process is in this one's PID namespace: in another one numbers mean other
// processes.
func (p process) here() bool {
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.pid))
	if err != nil {
		return false
	}
	mine, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && its == mine
}

// kill kills the process that was looked at, and no later one of its number; false if it can't be.
func (p process) kill() bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return err != unix.ESRCH && p.same() && unix.Kill(p.pid, unix.SIGKILL) == nil // before Linux 5.3
	}
	defer unix.Close(fd)
	return p.same() && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil
}

func (p process) same() bool {
	now, ok := look(p.pid)
	return ok && now.start == p.start
}

func collect(pid int) {
	var status unix.WaitStatus
	_, _ = unix.Wait4(pid, &status, unix.WNOHANG, nil)
}

// Self names this process for good: PID-START.
func Self() string {
	p, _ := look(os.Getpid())
	return name(os.Getpid(), p.start)
}

func name(pid int, start string) string { return fmt.Sprintf("%d-%s", pid, start) }

// Lives reports whether a process that Self named is there.
func Lives(core string) bool {
	number, _, _ := strings.Cut(core, "-")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return false
	}
	p, ok := look(pid)
	return ok && name(pid, p.start) == core
}

// descends walks up to the first process. Who has a mark of this core's may have got rid of its
// parents.
func descends(pid int) bool {
	if (process{pid: pid}).marked() {
		return true
	}
	const deepest = 1000
	for range deepest {
		switch {
		case pid == os.Getpid():
			return true
		case pid <= 1:
			return false
		}
		p, ok := look(pid)
		if !ok {
			return true
		}
		pid = p.parent
	}
	return true
}

// marked reports whether a process has a mark of this core's.
func (p process) marked() bool {
	core, _, ok := strings.Cut(p.mark(), "/")
	return ok && core == Self()
}
