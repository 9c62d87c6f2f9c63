package wasm

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Numbers of WASI preview 1.
const (
	okay         = 0
	badf         = 8
	fault        = 21
	inval        = 28
	notsup       = 58
	subscription = 48
	eventBytes   = 32
	eventClock   = 0
	eventRead    = 1
	eventWrite   = 2
	flagNonblock = 4
	typeDir      = 3
	absolute     = 1
)

// exportWaiting replaces what wazero's WASI can't do for readers that are no files: a non-blocking
// standard input, and waiting for it and for timers at once. So a module with threads of its own
// kind (goroutines) rests only when all of them do, and the runner knows it.
func exportWaiting(b wazero.HostModuleBuilder) {
	i32 := api.ValueTypeI32
	export := func(name string, params int, f func(*instance, api.Memory, []uint64) uint64) {
		types := make([]api.ValueType, params)
		for i := range types {
			types[i] = i32
		}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			stack[0] = f(ctx.Value(instanceKey{}).(*instance), m.Memory(), stack)
		}), types, []api.ValueType{i32}).Export(name)
	}
	export("poll_oneoff", 4, pollOneoff)
	export("fd_fdstat_get", 2, fdstatGet)
	export("fd_fdstat_set_flags", 2, fdstatSetFlags)
}

// fdstatGet implements fd_fdstat_get(fd, stat). Rights are not looked at by anybody, so all are
// given.
func fdstatGet(i *instance, m api.Memory, p []uint64) uint64 {
	fd, out := uint32(p[0]), uint32(p[1])
	stat, ok := m.Read(out, 24)
	if !ok {
		return fault
	}
	clear(stat)
	if fd >= 3 && fd < 3+uint32(i.mounts) {
		stat[0] = typeDir
	}
	i.stdio.mu.Lock()
	if fd == 0 && i.stdio.nonblock {
		stat[2] = flagNonblock
	}
	i.stdio.mu.Unlock()
	binary.LittleEndian.PutUint64(stat[8:], ^uint64(0))
	binary.LittleEndian.PutUint64(stat[16:], ^uint64(0))
	return okay
}

// fdstatSetFlags implements fd_fdstat_set_flags(fd, flags), for standard input.
func fdstatSetFlags(i *instance, _ api.Memory, p []uint64) uint64 {
	if p[0] != 0 {
		return notsup
	}
	i.stdio.mu.Lock()
	i.stdio.nonblock = p[1]&flagNonblock != 0
	i.stdio.mu.Unlock()
	return okay
}

// pollOneoff implements poll_oneoff(in, out, n, count): it waits until standard input can be read
// or the first of the clocks is due.
func pollOneoff(i *instance, m api.Memory, p []uint64) uint64 {
	in, out, n, count := uint32(p[0]), uint32(p[1]), uint32(p[2]), uint32(p[3])
	if n == 0 || n > 1<<16 {
		return inval
	}
	subs, ok := m.Read(in, n*subscription)
	if !ok {
		return fault
	}
	events, ok := m.Read(out, n*eventBytes)
	if !ok {
		return fault
	}
	w := waitFor(i, subs)
	if w.now == 0 {
		i.await(w)
	}
	clear(events)
	if !m.WriteUint32Le(count, uint32(w.write(i, subs, events))) {
		return fault
	}
	return okay
}

// wish is what a module waits for.
type wish struct {
	input bool
	// now counts what is so already.
	now int
	// timed: there is a clock, which is due after the duration.
	timed bool
	after time.Duration
	// waited is how long it waited.
	waited time.Duration
}

func waitFor(i *instance, subs []byte) *wish {
	w := &wish{}
	for ; len(subs) > 0; subs = subs[subscription:] {
		switch kind, fd := subs[8], binary.LittleEndian.Uint32(subs[16:]); {
		case kind == eventClock:
			if d := i.until(subs); !w.timed || d < w.after {
				w.timed, w.after = true, d
			}
		case kind == eventRead && fd == 0:
			w.input = true
			if i.stdio.ready() {
				w.now++
			}
		default: // Writing never waits here, and files are always there.
			w.now++
		}
	}
	return w
}

// until returns how long it is to a clock's time.
func (i *instance) until(sub []byte) time.Duration {
	t := binary.LittleEndian.Uint64(sub[24:])
	if binary.LittleEndian.Uint16(sub[40:])&absolute != 0 {
		const realtime = 0
		now := uint64(i.nanotime())
		if binary.LittleEndian.Uint32(sub[16:]) == realtime {
			seconds, nanos := i.walltime()
			now = uint64(seconds)*uint64(time.Second) + uint64(nanos)
		}
		t -= min(t, now)
	}
	return time.Duration(min(t, 1<<62))
}

// await waits, and lets the instance's clock go on by as much.
func (i *instance) await(w *wish) {
	began := time.Now() // before the alarm is set, which rings once
	var alarm <-chan time.Time
	if w.timed {
		if w.after <= 0 {
			return
		}
		t := time.NewTimer(w.after)
		defer t.Stop()
		alarm = t.C
	}
	for {
		i.stdio.wait(w.input, alarm)
		w.waited = time.Since(began)
		if w.timed && w.waited >= w.after || w.input && i.stdio.ready() {
			i.clock.wait(w.waited)
			return
		}
	}
}

// write writes the events that came and returns their number.
func (w *wish) write(i *instance, subs, events []byte) int {
	n := 0
	for ; len(subs) > 0; subs = subs[subscription:] {
		kind, fd := subs[8], binary.LittleEndian.Uint32(subs[16:])
		switch {
		case kind == eventClock && !w.due(i, subs):
			continue
		case kind == eventRead && fd == 0 && !i.stdio.ready():
			continue
		}
		e := events[n*eventBytes:]
		copy(e[:8], subs[:8])
		e[10] = kind
		if kind > eventWrite {
			e[8] = inval
		}
		n++
	}
	return n
}

// due reports whether a clock's time has come.
func (w *wish) due(i *instance, sub []byte) bool {
	left := i.until(sub)
	if binary.LittleEndian.Uint16(sub[40:])&absolute == 0 {
		left -= w.waited
	}
	return left <= 0
}
