package server

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	gometrics "runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// DefaultMemory returns how much memory the core may use where nobody says it: half of what the
// machine has, or of the narrowest limit of this process's cgroup (v2); the other half is for the
// plugins. 0 where that isn't known.
func DefaultMemory() uint64 { return defaultMemory("/proc", "/sys/fs/cgroup") }

func defaultMemory(proc, groups string) uint64 {
	all, _ := meminfo(filepath.Join(proc, "meminfo"), "MemTotal:")
	if own, err := os.ReadFile(filepath.Join(proc, "self/cgroup")); err == nil {
		if path, found := strings.CutPrefix(strings.TrimSpace(string(own)), "0::"); found {
			if most, limited := limitOf(groups, path); limited && (all == 0 || most < all) {
				all = most
			}
		}
	}
	return all / 2
}

// pluginMemory is how much one plugin may use where its entry doesn't say: the other half, so that
// one that leaks ends before the machine has none left and the kernel chooses whom to kill. It is a
// round number, as people write them.
func pluginMemory() manifest.Size {
	const round = 1 << 20
	return manifest.Size(DefaultMemory() / round * round)
}

// limitOf returns the narrowest limit of a cgroup and those around it.
func limitOf(root, path string) (most uint64, limited bool) {
	for at := filepath.Clean("/" + path); ; at = filepath.Dir(at) {
		if here, ok := number(filepath.Join(root, at, "memory.max")); ok && (!limited || here < most) {
			most, limited = here, true
		}
		if at == "/" {
			return most, limited
		}
	}
}

// usedMemory returns how many bytes this process uses: what the last collection found alive, and
// what Go's runtime needs besides. Garbage doesn't count, for it goes when there is need.
func usedMemory() uint64 {
	sample := []gometrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/os-stacks:bytes"},
		{Name: "/memory/classes/metadata/mspan/inuse:bytes"}, {Name: "/memory/classes/metadata/mcache/inuse:bytes"},
		{Name: "/memory/classes/metadata/other:bytes"}, {Name: "/memory/classes/other:bytes"}, {Name: "/memory/classes/profiling/buckets:bytes"},
	}
	gometrics.Read(sample)
	var sum uint64
	for _, s := range sample {
		if s.Value.Kind() == gometrics.KindUint64 {
			sum += s.Value.Uint64()
		}
	}
	return sum
}

// collectEvery is how often garbage is collected while memory is short: a core that has little to
// do would not see for minutes that there is enough again. As often more goes of what is kept, for
// only then it shows what became of that which went before.
const collectEvery = 2 * time.Second

// relieving returns a func that lets go of some of what can be done without, the oldest first:
// views, and where memory is short of garbage, and, once no view is left, of revisions.
func relieving(views func(bytes uint64) (any bool), revisions func(bytes uint64)) func(bytes uint64, short bool) {
	var last time.Time
	return func(bytes uint64, short bool) {
		now := time.Now()
		if now.Sub(last) < collectEvery {
			return
		}
		last = now
		any := views(bytes)
		if short {
			if !any {
				revisions(bytes)
			}
			debug.FreeOSMemory()
		}
	}
}

// idleBytes is how much the core allocates in two seconds, at most, while nothing changes: looks at
// plugins and streams, and a page now and then.
const idleBytes = 1 << 20

// warnOfMemory says as soon as clients may come if there is little room for them.
func (s *Server) warnOfMemory() {
	if s.cfg.Memory == 0 {
		return
	}
	runtime.GC() // or it counts what only the start needed
	used := usedMemory()
	if enough, short := budget.Room(used, s.cfg.Memory); short {
		s.log.Warn("memoryLimit leaves little room for clients: raise it", "usesWithoutClients", used, "memoryLimit", s.cfg.Memory,
			"refusesStreamsFrom", budget.Refuses(s.cfg.Memory), "atLeast", enough)
	}
}

// freeMemory returns how much memory may still be used: what the machine has, or what is left of a
// limit of this process's cgroup (v2).
func freeMemory() (bytes uint64, known bool) {
	free, known := available("/proc/meminfo")
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return free, known
	}
	path, found := strings.CutPrefix(strings.TrimSpace(string(own)), "0::")
	if !found {
		return free, known
	}
	left, limited := leftOf("/sys/fs/cgroup", path)
	switch {
	case !limited:
		return free, known
	case !known:
		return left, true
	}
	return min(free, left), true
}

// leftOf returns what is left of the narrowest limit of a cgroup and those around it.
func leftOf(root, path string) (left uint64, limited bool) {
	for at := filepath.Clean("/" + path); ; at = filepath.Dir(at) {
		most, isLimited := number(filepath.Join(root, at, "memory.max"))
		used, counted := number(filepath.Join(root, at, "memory.current"))
		if here := most - min(used, most); isLimited && counted && (!limited || here < left) {
			left, limited = here, true
		}
		if at == "/" {
			return left, limited
		}
	}
}

// available reads MemAvailable.
func available(path string) (bytes uint64, known bool) { return meminfo(path, "MemAvailable:") }

// meminfo reads a line of /proc/meminfo.
func meminfo(path, line string) (bytes uint64, known bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), line); ok {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

func number(path string) (n uint64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
