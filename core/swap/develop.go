package swap

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host"
)

// glance is how often Develop looks at programs. A program must have stayed as it is for as long: builds write in pieces.
const glance = 200 * time.Millisecond

// Develop restarts each plugin whose program changes, until ctx ends: for those who write plugins. A program that does not get ready leaves the old
// one running, as any swap does.
func (s *Swapper) Develop(ctx context.Context) error {
	select {
	case <-s.cfg.Control.Started():
	case <-ctx.Done():
		return nil
	}
	runs, before := map[string]string{}, s.programs()
	for name, stamp := range before {
		runs[name] = stamp
	}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		now := s.programs()
		for name, stamp := range now {
			switch {
			case runs[name] == "":
				runs[name] = stamp
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
	if _, err := s.Restart(ctx, name, Options{Force: true}); err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("the changed program was not taken; the old one goes on", "plugin", name, "error", err)
	}
}

// programs returns a stamp of each plugin's program. One that is being replaced has none.
func (s *Swapper) programs() map[string]string {
	set, stamps := s.current(), map[string]string{}
	for _, e := range set.Plugins {
		if stamp := stampOf(set, e); !e.Disabled && stamp != "" {
			stamps[e.Name] = stamp
		}
	}
	return stamps
}

func stampOf(set *host.Set, e *host.Entry) string {
	var all []string
	for _, path := range set.Programs(e) {
		info, err := os.Stat(path)
		if err != nil {
			return ""
		}
		all = append(all, fmt.Sprintf("%s %d %d", path, info.ModTime().UnixNano(), info.Size()))
	}
	return strings.Join(all, "\n")
}
