package reliability

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// memory is the most MiB that the core and the generator's processes have had.
type memory struct {
	mu              sync.Mutex
	core, generator int
	stop            chan struct{}
	ended           sync.WaitGroup
}

// watch looks at a core and its children until stop is closed: a generator that is restarted leaves
// nothing behind to look at.
func watch(core int) *memory {
	m := &memory{stop: make(chan struct{})}
	m.ended.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			m.look(core)
			select {
			case <-m.stop:
				return
			case <-tick.C:
			}
		}
	})
	return m
}

func (m *memory) look(core int) {
	peak, generator := peakOf(core), 0
	for _, child := range children(core) {
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child)); bytes.Contains(line, []byte("plugin\x00generator/istio")) {
			generator = max(generator, peakOf(child))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.core, m.generator = max(m.core, peak), max(m.generator, generator)
}

// peaks ends the watch.
func (m *memory) peaks() (core, generator int) {
	close(m.stop)
	m.ended.Wait()
	return m.core, m.generator
}

// peakOf is how many MiB a process has had at most; 0: it is away.
func peakOf(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kiB, _ := strconv.Atoi(fields[0])
	return kiB >> 10
}

// children of a process, whichever of its threads started them.
func children(pid int) (all []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}
