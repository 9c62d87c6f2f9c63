package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// process is a program that was started. ended is closed when it is over; err is valid then.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
	err   error
}

// launch starts a program that writes to a log file. It has a process group of its own, so that Ctrl-C reaches only the demo, which ends it
// in order; and it dies with the demo.
func launch(log string, args ...string) (*process, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: log, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// lastLines of the log.
func (p *process) lastLines(n int) string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-n):], "\n  ")
}

// output writes what a program prints to a file.
func output(file, program string, args ...string) error {
	var complaint bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &complaint
	b, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, args[0], err, complaint.String())
	}
	return os.WriteFile(file, b, 0o644)
}
