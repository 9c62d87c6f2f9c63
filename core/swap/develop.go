package swap

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/ticks"
)

// glance is how often Develop looks at programs. A program must have stayed as it is for as long:
// builds write in pieces.
const glance = 200 * time.Millisecond

// Develop restarts each plugin whose program changes, until ctx ends: for those who write plugins.
// A program that does not get ready leaves the old one running, as any swap does.
func (s *Swapper) Develop(ctx context.Context) error {
	select {
	case <-s.cfg.Control.Started():
	case <-ctx.Done():
		return nil
	}
	before := s.programs()
	runs := maps.Clone(before)
	for range ticks.Every(ctx, glance) {
		now := s.programs()
		for name, stamp := range now {
			switch {
			case runs[name].paths != stamp.paths: // it was swapped for another program, which runs already
				runs[name] = s.startedFrom(name, stamp)
			case stamp != runs[name] && stamp == before[name]:
				runs[name] = stamp
				s.renew(ctx, name)
			}
		}
		before = now
	}
	return nil
}

// startedFrom returns the stamp of what a plugin was started from, as far as that is known: its
// program may have changed since.
func (s *Swapper) startedFrom(name string, now stamp) stamp {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.ofLocked(name).program; was.paths == now.paths {
		return was
	}
	return now
}

func (s *Swapper) renew(ctx context.Context, name string) {
	s.cfg.Log.Info("the plugin's program has changed", "plugin", name)
	if _, err := s.Restart(audit.Acting(ctx, audit.ByDev), name, Options{Force: true}); err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("the changed program was not taken; the old one goes on", "plugin", name, "error", err)
	}
}

// stamp is what can be seen of a plugin's program without reading it.
type stamp struct{ paths, state string }

// programs returns a stamp of each plugin's program. One that is being replaced has none.
func (s *Swapper) programs() map[string]stamp {
	set, stamps := s.current(), map[string]stamp{}
	for _, e := range set.Plugins {
		if st, ok := stampOf(set, e); ok && e.Runs() {
			stamps[e.Name] = st
		}
	}
	return stamps
}

func stampOf(set *manifest.Set, e *manifest.Entry) (st stamp, ok bool) {
	paths := set.Programs(e)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return stamp{}, false
		}
		st.state += fmt.Sprintf("%d %d\n", info.ModTime().UnixNano(), info.Size())
	}
	st.paths = strings.Join(paths, "\n")
	return st, len(paths) > 0
}
