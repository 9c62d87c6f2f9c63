package swap

import (
	"fmt"
	"os"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

func (s *Swapper) current() *manifest.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set
}

// runs makes a set the one that runs.
func (s *Swapper) runs(set *manifest.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set = set
}

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

// stamp is what can be seen of a plugin's program without reading it.
type stamp struct{ paths, state string }

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
