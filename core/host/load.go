package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/host/load"
)

// watch begins to measure a session.
func (s *slot) watch(all *load.Meters) *load.Session {
	session := all.Of(s.entry.Name).Session()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load = session
	return session
}

// Loads returns what was measured of each plugin, by name.
func (h *Host) Loads() map[string]load.Load {
	all := map[string]load.Load{}
	for _, s := range h.all() {
		l := h.meters.Of(s.entry.Name).Read()
		s.mu.Lock()
		session, pid := s.load, s.status.PID
		s.mu.Unlock()
		if pid > 0 {
			l.Lag, l.CPUSeconds = session.Lag().Seconds(), cpuSeconds(pid)
		}
		all[s.entry.Name] = l
	}
	return all
}

// cpuSeconds is the processor time that a process has used, or 0 where it is unknown: utime and
// stime of proc_pid_stat(5), in the 100ths of a second that Linux counts for programs.
func cpuSeconds(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ") // the name may have anything in it
	fields := strings.Fields(after)
	const utime, stime = 11, 12
	if len(fields) <= stime {
		return 0
	}
	user, err1 := strconv.ParseUint(fields[utime], 10, 64)
	system, err2 := strconv.ParseUint(fields[stime], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return float64(user+system) / 100
}
