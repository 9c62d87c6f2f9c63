package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"syscall"
)

// profileVariable names the directory that this process writes profiles into. A plugin gets it
// where `allow.env` names it.
const profileVariable = "COXSWAIN_PROFILE"

// profiler writes profiles of this process: the first SIGUSR1 begins one of the CPU, the next ends
// it and writes it with those of the heap, of all allocations so far and of contention in between.
type profiler struct {
	prefix string
	round  int
	cpu    *os.File
}

// profile listens for signals if the environment names a directory. The files are called
// NAME-PID-ROUND.KIND.pprof.
func profile(p *program, name string, log *slog.Logger) {
	dir := p.variable(profileVariable)
	if dir == "" {
		return
	}
	w := &profiler{prefix: filepath.Join(dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, "/", "-"), os.Getpid()))}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for range signals {
			if err := w.turn(); err != nil {
				log.Error("profile", "error", err)
			}
		}
	}()
}

func (w *profiler) turn() error {
	if w.cpu == nil {
		return w.begin()
	}
	return w.end()
}

func (w *profiler) begin() (err error) {
	w.round++
	if w.cpu, err = os.Create(w.path("cpu")); err != nil {
		return err
	}
	runtime.SetMutexProfileFraction(20)
	return pprof.StartCPUProfile(w.cpu)
}

func (w *profiler) end() error {
	pprof.StopCPUProfile()
	runtime.SetMutexProfileFraction(0)
	err := w.cpu.Close()
	w.cpu = nil
	if err != nil {
		return err
	}
	runtime.GC() // the heap's profile is that of the last collection
	for _, kind := range []string{"heap", "allocs", "mutex"} {
		if err := w.write(kind); err != nil {
			return err
		}
	}
	return nil
}

func (w *profiler) write(kind string) error {
	f, err := os.Create(w.path(kind))
	if err != nil {
		return err
	}
	if err := pprof.Lookup(kind).WriteTo(f, 0); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func (w *profiler) path(kind string) string {
	return fmt.Sprintf("%s-%d.%s.pprof", w.prefix, w.round, kind)
}
