// Package stage runs the programs of a demo on this machine, each with a log of its own, and ends
// them in order.
package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	patience, stopping, tick = 30 * time.Second, 12 * time.Second, 50 * time.Millisecond
	reminder                 = 5 * time.Second
)

// Stage is what runs. The program that makes one locks its main goroutine to its thread: children
// die with the thread that started them.
type Stage struct {
	// Dir is the folder for logs.
	Dir string

	started []*Process
	died    chan error
}

// New returns one with nothing on it, for up to 16 programs.
func New(dir string) *Stage { return &Stage{Dir: dir, died: make(chan error, 16)} }

// Process is a program that was started. Ended is closed when it is over.
type Process struct {
	Name, Log string
	PID       int
	Ended     chan struct{}

	cmd *exec.Cmd
	err error
}

// Free fails if something listens at one of these addresses.
func Free(addresses ...string) error {
	for _, a := range addresses {
		l, err := net.Listen("tcp", a)
		if err != nil {
			return fmt.Errorf("the demo needs %s: %w", a, err)
		}
		_ = l.Close()
	}
	return nil
}

// Launch starts a program. It has a process group of its own, so that Ctrl-C reaches only the demo,
// which ends it in order; and it dies with the demo.
func (s *Stage) Launch(name string, args ...string) error {
	p := &Process{Name: name, Log: filepath.Join(s.Dir, name+".log"), Ended: make(chan struct{}), cmd: exec.Command(args[0], args[1:]...)}
	log, err := os.Create(p.Log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.PID = p.cmd.Process.Pid
	s.started = append(s.started, p)
	go func() {
		p.err = p.cmd.Wait()
		close(p.Ended)
		s.died <- fmt.Errorf("%s has ended (%v); its last lines:\n%s", name, p.err, p.lastLines(10))
	}()
	return nil
}

// Wait asks until check returns nil.
func (s *Stage) Wait(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s does not serve after %v; see the logs in %s", what, patience, s.Dir))
	defer cancel()
	fmt.Printf("waiting until %s serves\n", what)
	remind := time.NewTicker(reminder)
	defer remind.Stop()
	for {
		why := check(ctx)
		if why == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), why)
		case err := <-s.died:
			return err
		case <-remind.C:
			fmt.Printf("  ... %s does not serve yet; the logs are in %s\n", what, s.Dir)
		case <-time.After(tick):
		}
	}
}

// Died says that a program has ended.
func (s *Stage) Died() <-chan error { return s.died }

// Tell prints what runs.
func (s *Stage) Tell() {
	for _, p := range s.started {
		fmt.Printf("%-16s pid %-7d log %s\n", p.Name, p.PID, p.Log)
	}
}

// Stop ends what was started, the last first.
func (s *Stage) Stop() {
	deadline := time.After(stopping)
	for i := len(s.started) - 1; i >= 0; i-- {
		p := s.started[i]
		if err := p.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
			continue
		}
		select {
		case <-p.Ended:
		case <-deadline:
			_ = p.cmd.Process.Kill()
			<-p.Ended
		}
	}
}

func (p *Process) lastLines(n int) string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}

// Output writes what a program prints to a file.
func Output(file, program string, args ...string) error {
	var complaint bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &complaint
	b, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, args[0], err, complaint.String())
	}
	return os.WriteFile(file, b, 0o644)
}
