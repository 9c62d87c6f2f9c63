// Package load measures what plugins are asked and how they answer: questions, errors, times and
// bytes, by watching the messages of their sessions. It costs a clock reading and a few atomic
// additions for each message.
package load

import (
	"sync"
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of the histogram's buckets; a last bucket has what took longer.
var bounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second, 30 * time.Second,
}

// Load is what was measured since the core's start, over all lives of a plugin.
type Load struct {
	// Calls are questions that were answered (State, Attach, Want, Patch, Authenticate), and of
	// sources, which nobody asks, their Rows.
	Calls uint64 `json:"calls"`
	// Errors are answers that say that something failed.
	Errors uint64 `json:"errors"`
	// BytesIn came from the plugin, BytesOut went to it.
	BytesIn  uint64 `json:"bytesIn"`
	BytesOut uint64 `json:"bytesOut"`
	// Seconds that answers took together, and Times: how many took how long.
	Seconds float64 `json:"seconds"`
	Times   Times   `json:"times,omitempty"`
	// Lag is for how long the oldest question waits for its answer, in seconds; 0: there is none.
	Lag float64 `json:"lag"`
	// CPUSeconds that its process has used since its start.
	CPUSeconds float64 `json:"cpuSeconds"`
}

// Meter adds up one plugin's load. Its methods may be called by several goroutines.
type Meter struct {
	calls, errors, in, out, nanoseconds atomic.Uint64
	times                               [len(bounds) + 1]atomic.Uint64
}

// Read returns the load so far, without lag and CPU time.
func (m *Meter) Read() Load {
	l := Load{
		Calls: m.calls.Load(), Errors: m.errors.Load(), BytesIn: m.in.Load(), BytesOut: m.out.Load(),
		Seconds: time.Duration(m.nanoseconds.Load()).Seconds(), Times: make(Times, len(m.times)),
	}
	for i := range m.times {
		l.Times[i] = m.times[i].Load()
	}
	return l
}

func (m *Meter) took(d time.Duration) {
	i := 0
	for i < len(bounds) && d > bounds[i] {
		i++
	}
	m.times[i].Add(1)
	m.nanoseconds.Add(uint64(max(d, 0)))
}

// Meters are the meters of plugins by name. The zero value is ready.
type Meters struct {
	mu sync.Mutex
	of map[string]*Meter
}

// Of returns a plugin's meter.
func (m *Meters) Of(plugin string) *Meter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]*Meter{}
	}
	if m.of[plugin] == nil {
		m.of[plugin] = &Meter{}
	}
	return m.of[plugin]
}
