package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/sandbox"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// keep runs an entry's plugin, again and again, until ctx ends. It returns an error if the start of
// the core fails with it.
func (h *Host) keep(ctx context.Context, s *slot, dir *runtimeDir) error {
	if h.declare(s) {
		s.sleep(ctx)
	} else {
		h.waitServed(ctx, s)
	}
	for failures := 0; ; failures++ {
		if ctx.Err() != nil { // while it slept
			s.move(Gone, nil, nil)
			return nil
		}
		up, tail, err := h.once(ctx, s, dir)
		if ctx.Err() != nil {
			if !errors.Is(err, errKilled) {
				err = nil
			}
			s.move(Gone, err, func(st *Status) { st.PID = 0 })
			return nil
		}
		if errors.Is(err, ErrAsleep) {
			s.sleep(ctx)
			failures = -1
			continue
		}
		if s.failed(withTail(err, tail), up) {
			return &StartError{s.entry, err, tail}
		}
		if up >= h.cfg.Backoff.Reset {
			failures = 0
		}
		pause := h.cfg.Backoff.pause(failures, rand.Float64())
		s.log.Info("plugin will be started again", "in", pause.Round(time.Millisecond), "failures", failures+1)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			s.move(Gone, nil, nil)
			return nil
		}
		if s.isStandby() {
			return errors.New("it was replaced while it was away")
		}
	}
}

// once is one life of a plugin, from its start until its process is gone. It returns how long it
// was ready, its process's last lines of standard error, and why it ended.
func (h *Host) once(ctx context.Context, s *slot, dir *runtimeDir) (up time.Duration, tail string, err error) {
	s.move(Starting, nil, nil)
	candidate := s.isStandby()
	if err := dir.ensure(); err != nil {
		return 0, "", fmt.Errorf("runtime directory: %w", err)
	}
	if err := h.fetch(ctx, s); err != nil {
		return 0, "", err
	}
	h.warnExposed(s)
	group := h.group(s)
	if group != nil {
		defer group.Remove()
	}
	running, err := h.start(ctx, s, dir.path, group)
	if err != nil {
		return 0, "", err
	}
	s.move(Configuring, nil, func(st *Status) {
		st.PID, st.User = running.PID(), s.entry.User
		if is, ok := running.(interface{ Sandbox() sandbox.Report }); ok {
			st.Sandbox = is.Sandbox()
		}
	})
	l := &life{slot: s, running: running, link: session.NewObserved(h.tapped(s.entry, running.Carrier()), s.watch(&h.meters))}
	memory := watchMemory(running, h.launcher.allowance(s.entry))
	inst, err := h.configure(ctx, s, l.link)
	if err == nil {
		inst.PID, inst.Candidate = running.PID(), candidate
		began := time.Now()
		s.ready(inst)
		err = l.serve(ctx, h.cfg.Sessions, inst)
		up = time.Since(began)
	}
	err = l.end(err)
	if over := memory.ended(); over != nil {
		err = over
	} else if group != nil && group.Exceeded() {
		err = session.Crossed("memory", "the kernel ended it: it needed more memory than it may have (limits.memory, %s)", h.launcher.allowance(s.entry))
	}
	return up, strings.Join(running.Stderr(), "\n"), err
}

// withTail appends the last lines of standard error.
func withTail(err error, tail string) error {
	tail = strings.TrimSpace(tail)
	if tail == "" {
		return err
	}
	return fmt.Errorf("%w; its last lines of standard error:\n  %s", err, strings.ReplaceAll(tail, "\n", "\n  "))
}
