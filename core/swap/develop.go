package swap

import (
	"context"
	"maps"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/ticks"
)

// Develop returns what restarts each plugin whose program changes, until ctx ends: for those who
// write plugins. It is called before any is started, so that what changes meanwhile is noticed. A
// program that does not get ready leaves the old one running, as any swap does.
func (s *Swapper) Develop() (run func(ctx context.Context) error) {
	first := s.running.programs()
	return func(ctx context.Context) error {
		select {
		case <-s.cfg.Control.Started():
		case <-ctx.Done():
			return nil
		}
		s.develop(ctx, first)
		return nil
	}
}

func (s *Swapper) develop(ctx context.Context, first map[string]stamp) {
	before, runs := first, maps.Clone(first)
	for range ticks.Every(ctx, pollEvery) {
		now := s.running.programs()
		for name, stamp := range now {
			switch {
			case runs[name].paths != stamp.paths: // it was swapped for another program, which runs already
				runs[name] = s.windows.startedFrom(name, stamp)
			case stamp != runs[name] && stamp == before[name]:
				runs[name] = stamp
				s.renew(ctx, name)
			}
		}
		before = now
	}
}

func (s *Swapper) renew(ctx context.Context, name string) {
	s.cfg.Log.Info("the plugin's program has changed", "plugin", name)
	if _, err := s.Restart(audit.Acting(ctx, audit.ByDev), name, Options{Force: true}); err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("the changed program was not taken; the old one goes on", "plugin", name, "error", err)
	}
}
