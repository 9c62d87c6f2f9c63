package host

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"golang.org/x/time/rate"
)

// configure says Hello and returns the instance that answered Ready.
func (h *Host) configure(ctx context.Context, s *slot, link *session.Core) (*Instance, error) {
	e := s.runs()
	with, err := h.launcher.fill(e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go unready(ctx, e, link, cancel)
	if err := link.Send(ctx, &pb.FromCore{Hello: hello(e, with.config, h.cfg.Epoch, h.launcher.allowance(e))}); err != nil {
		return nil, err
	}
	ready, err := answer(ctx, s, link)
	if err != nil {
		return nil, err
	}
	if err := check(e, ready); err != nil {
		return nil, err
	}
	if err := conforms(e, with, ready.ConfigSchema); err != nil {
		return nil, err
	}
	h.secrets.Declare(ready)
	return &Instance{Entry: s.entry, Order: s.order, Ready: ready, Link: link}, nil
}

// unready ends ctx when a plugin is late with its Ready. The time in which a runner compiles a
// module, and says so, has a limit of its own: what was compiled is kept only when it is done, so
// that who is ended before would never get up.
func unready(ctx context.Context, e *manifest.Entry, link *session.Core, late context.CancelCauseFunc) {
	began, limit := time.Now(), e.Limits.Configure
	for {
		last := began
		if p := link.LastProgress(); e.Wasm != nil && p.After(last) {
			last = p
		}
		wait := time.Until(last.Add(limit))
		if compiling := time.Until(began.Add(e.Limits.Compile + limit)); e.Wasm != nil && compiling < wait {
			wait = compiling
		}
		switch {
		case wait <= 0 && e.Wasm != nil && time.Since(began) >= e.Limits.Compile+limit:
			late(session.Crossed("compile", "its module is not compiled within %v (limits.compile)", e.Limits.Compile))
			return
		case wait <= 0:
			late(session.Crossed("configure", "it has not said Ready within %v (limits.configure)", limit))
			return
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

func hello(e *manifest.Entry, config []byte, epoch uint64, memory manifest.Size) *pb.Hello {
	return &pb.Hello{
		Versions: []uint32{session.Version},
		Instance: e.Name,
		Config:   config,
		Grants:   grants(e),
		Epoch:    epoch,
		Edits:    true,
		Limits: &pb.Limits{
			MessageBytes: uint32(e.Limits.MessageBytes),
			CreditBytes:  session.InitialCredit,
			Rows:         e.Limits.Rows,
			RowBytes:     uint64(e.Limits.RowBytes),
			MemoryBytes:  uint64(memory),
			RevisionMs:   milliseconds(e.Limits.Revision),
			CallMs:       milliseconds(e.Limits.Call),
			ProgressMs:   milliseconds(e.Limits.Progress),
		},
	}
}

func milliseconds(d time.Duration) uint32 {
	return uint32(min(max(d.Milliseconds(), 1), math.MaxUint32))
}

// answer reads up to Ready or Refused. Log lines may come before.
func answer(ctx context.Context, s *slot, link *session.Core) (*pb.Ready, error) {
	said := rate.NewLimiter(10, 50)
	for {
		m, cost, err := link.Recv(ctx)
		if err != nil {
			return nil, err
		}
		link.Release(cost)
		switch {
		case m.Ready != nil:
			return m.Ready, nil
		case m.Refused != nil:
			hungUp(link)
			return nil, refusal(s.entry, m.Refused)
		case m.Log != nil:
			if said.Allow() {
				s.log.Info(m.Log.Text)
			}
		case m.Measure != nil:
		default:
			return nil, errors.New("it broke the contract: its first message is neither Ready nor Refused")
		}
	}
}

// hungUp waits a moment for a plugin that has refused to end its session, as it should; cutting it
// short would show in its last lines.
func hungUp(link *session.Core) {
	select {
	case <-link.Done():
	case <-time.After(farewell):
	}
}

// RefusedError is a plugin's word that it can't run with its config.
type RefusedError struct {
	// Field is a path into the config; it may be empty.
	Field, Reason string
	// At is where plugins.yaml says it; zero where it doesn't.
	At manifest.Place
}

// Error implements error.
func (e *RefusedError) Error() string {
	text := "it refused its config"
	if e.At.Line > 0 {
		text += " (" + e.At.String() + ")"
	}
	if e.Field != "" {
		text += ": " + e.Field
	}
	return text + ": " + e.Reason
}

func refusal(e *manifest.Entry, r *pb.Refused) error {
	return &RefusedError{Field: r.Field, Reason: r.Reason, At: e.PlaceOf(r.Field)}
}
