package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// settle is the silence that ends a phase.
const settle = 250 * time.Millisecond

// sidecars is what the load client reports.
type sidecars struct {
	Connect phase      `json:"connect"`
	Changes []reported `json:"changes"`
	Errors  int64      `json:"stream_errors"`
}

type quantiles struct {
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
}

// phase is what happened between two silences. CPU is that of the server with all its processes.
type phase struct {
	Time  quantiles        `json:"time"`
	CPU   float64          `json:"server_cpu_s"`
	Bytes map[string]int64 `json:"bytes"`
	Msgs  map[string]int64 `json:"msgs"`
	Busy  float64          `json:"other_cpus"`
	Lost  int64            `json:"lost"`
}

type reported struct {
	Runs []phase `json:"runs"`
}

// connect runs the load client against a server: all sidecars connect, then each touch is made n
// times.
func connect(ctx context.Context, c config, s *server, l load, edits []edit, n int, extra ...string) (*sidecars, error) {
	args := []string{
		"-addr", s.xds, "-clients", strconv.Itoa(l.sidecars), "-mode", l.mode, "-pid", strconv.Itoa(s.cmd.Process.Pid),
		"-settle", settle.String(), "-repeat", strconv.Itoa(n), "-json",
	}
	for _, e := range edits {
		args = append(args, "-touch", s.touch(e, l.mode == "delta"), "-expect", e.expect)
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, c.tool("xdsload"), append(args, extra...)...)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("xdsload: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	r := &sidecars{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		return nil, fmt.Errorf("xdsload: %w", err)
	}
	return r, nil
}

// hold keeps one sidecar of each namespace connected, so that the views stay known. release ends
// it.
func hold(c config, s *server, mode string) (release func(), err error) {
	cmd := exec.Command(c.tool("xdsload"), "-addr", s.xds, "-clients", "10", "-mode", mode, "-repeat", "1", "-touch", "exec sleep 600", "-expect", "cds:never")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its own group: it and the command that it waits for
		_ = cmd.Wait()
	}, nil
}
