package wasm

import (
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"
)

// still is the date that a module sees that was not granted the clock.
const still = 1_640_995_200 // 2022-01-01

// clock is the time of an instance that was not granted the real one: it stands still while the
// module computes and goes on while it waits, so that sleeping and timeouts work and nothing can be
// measured.
type clock struct {
	waited atomic.Int64
}

// wait notes that the module waited.
func (c *clock) wait(d time.Duration) {
	if d > 0 {
		c.waited.Add(int64(d))
	}
}

// nanotime does not begin at zero, which Go takes for a broken clock.
func (c *clock) nanotime() int64 { return int64(time.Second) + c.waited.Load() }

func (c *clock) walltime() (seconds int64, nanos int32) {
	now := c.waited.Load()
	return still + now/int64(time.Second), int32(now % int64(time.Second))
}

// set gives a module this clock, or the real one if that is granted.
func (c *clock) set(config wazero.ModuleConfig, granted bool) wazero.ModuleConfig {
	if granted {
		return config.WithSysWalltime().WithSysNanotime()
	}
	return config.WithWalltime(c.walltime, sys.ClockResolution(time.Microsecond)).
		WithNanotime(c.nanotime, sys.ClockResolution(time.Microsecond))
}

// monotonic and today are the real times.
func monotonic() int64 { return time.Now().UnixNano() }

func today() (seconds int64, nanos int32) {
	now := time.Now()
	return now.Unix(), int32(now.Nanosecond())
}
