package usage

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Sampling of memory; what is shorter is not seen.
const Sampling = 100 * time.Millisecond

// Memory follows the proportional set size of a process and all that it started: pages that they
// share are counted once.
type Memory struct {
	pid  int
	stop chan struct{}
	done sync.WaitGroup

	mu   sync.Mutex
	last float64
	peak float64
	at   map[string]float64
	now  map[string]float64
}

// Watch follows a process until Close.
func Watch(pid int) *Memory {
	m := &Memory{pid: pid, stop: make(chan struct{})}
	m.done.Go(func() {
		tick := time.NewTicker(Sampling)
		defer tick.Stop()
		for {
			select {
			case <-m.stop:
				return
			case <-tick.C:
				m.sample()
			}
		}
	})
	return m
}

func (m *Memory) sample() {
	var sum float64
	at := map[string]float64{}
	for _, pid := range Tree(m.pid) {
		size := PSS(pid)
		at[called(pid)] += size
		sum += size
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last, m.now = sum, at; sum > m.peak {
		m.peak, m.at = sum, at
	}
}

// Close ends the watching.
func (m *Memory) Close() {
	close(m.stop)
	m.done.Wait()
}

// Read returns the latest sample and the largest so far, in MB.
func (m *Memory) Read() (last, peak float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.peak
}

// Processes returns what each had when all had most, in MB, by what they do.
func (m *Memory) Processes() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// Latest returns what each has in the latest sample, in MB, by what they do.
func (m *Memory) Latest() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// called is which plugin a process runs, or its program.
func called(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
	if len(args) > 2 && args[1] == "plugin" {
		return args[2]
	}
	return filepath.Base(args[0])
}

// Tree returns a process and all that it started.
func Tree(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", all[i]))
		for _, t := range threads {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", all[i], t.Name()))
			for _, f := range strings.Fields(string(b)) {
				if child, err := strconv.Atoi(f); err == nil {
					all = append(all, child)
				}
			}
		}
	}
	return all
}

// PSS returns the proportional set size of a process alone, in MB.
func PSS(pid int) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "Pss:" {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb * 1024 / 1e6
		}
	}
	return 0
}
