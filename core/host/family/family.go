// Package family knows the processes that plugins' processes start: it finds them wherever they
// went, and ends them with their plugin, however they tried to get away (setsid, a double fork),
// and those that a killed core left behind.
package family

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Env is the variable by which what a plugin starts is known; it is inherited. Its value is
// CORE/RANDOM, CORE being PID-START of the core's process.
const Env = "COXSWAIN_INSTANCE"

// Family is what this process has started.
type Family struct {
	// Alone: this process starts nothing but plugins, and Adopt was called. Then an orphan without
	// a mark is a plugin's, too.
	Alone bool
	Log   *slog.Logger

	// starting is held for reading while a child is started and not noted yet.
	starting sync.RWMutex
	mu       sync.Mutex
	children map[int]bool
	marks    map[string]bool
}

// Mark makes the mark of one start of a plugin, which is part of the family until End.
func (f *Family) Mark() string {
	mark := Self() + "/" + rand.Text()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.marks == nil {
		f.marks = map[string]bool{}
	}
	f.marks[mark] = true
	return mark
}

// Start runs start, which starts a child and returns its number. The caller waits for that child,
// and calls Waited then.
func (f *Family) Start(start func() (pid int, err error)) error {
	f.starting.RLock()
	defer f.starting.RUnlock()
	pid, err := start()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.children == nil {
		f.children = map[int]bool{}
	}
	f.children[pid] = true
	return nil
}

// Waited forgets a child.
func (f *Family) Waited(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.children, pid)
}

const (
	// rounds is how often End looks for what is left, pausing in between: what it kills may have
	// started more meanwhile.
	rounds = 200
	pause  = 5 * time.Millisecond
)

// End kills whatever a start of a plugin has left, and returns when it is gone. Its child must have
// ended. Orphans that show no mark go with it, too: nobody can say whose they are.
func (f *Family) End(mark string) {
	f.mu.Lock()
	delete(f.marks, mark)
	f.mu.Unlock()
	killed := map[int]bool{}
	for range rounds {
		left := f.left(mark)
		f.reap(killed)
		if len(left) == 0 {
			break
		}
		for _, p := range left {
			if p.kill() {
				killed[p.pid] = true
			}
		}
		time.Sleep(pause)
	}
	f.reap(killed)
	if len(killed) > 0 && f.Log != nil {
		f.Log.Info("processes that a plugin left behind were killed", "processes", len(killed))
	}
}

// left returns the living processes with a mark, and the orphans without any.
func (f *Family) left(mark string) []process {
	f.starting.Lock() // Or a child that was not noted yet would be taken for an orphan.
	defer f.starting.Unlock()
	var found []process
	for _, p := range processes() {
		if f.isChild(p.pid) || p.zombie {
			continue
		}
		if has := p.mark(); has == mark || f.Alone && p.parent == ownPID() && !f.living(has) {
			found = append(found, p)
		}
	}
	return found
}

func (f *Family) isChild(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.children[pid]
}

func (f *Family) living(mark string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks[mark]
}

// reap collects the dead: those that were killed here, if they are this process's to collect, and
// all orphans, if it is alone.
func (f *Family) reap(killed map[int]bool) {
	f.starting.Lock()
	defer f.starting.Unlock()
	for _, p := range own() {
		if p.zombie && !f.isChild(p.pid) && (f.Alone || killed[p.pid]) {
			collect(p.pid)
		}
	}
}

// Sweep kills what plugins of dead cores left behind, and returns how many processes.
func Sweep() int {
	swept := 0
	for range rounds {
		n := 0
		for _, p := range processes() {
			core, _, ok := strings.Cut(p.mark(), "/")
			if ok && !p.zombie && !Lives(core) && p.here() && p.kill() {
				n++
			}
		}
		if n == 0 {
			break
		}
		swept += n
		time.Sleep(pause)
	}
	return swept
}

// Descends reports whether a process was started, by whatever detour, by this one: by one of its
// plugins. One that can't be traced counts as such.
func Descends(pid int) bool { return descends(pid) }
