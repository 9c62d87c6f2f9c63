package swap

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// running is the set that runs.
type running struct {
	mu  sync.Mutex
	set *manifest.Set
}

// now returns the set that runs.
func (r *running) now() *manifest.Set {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.set
}

// becomes makes a set the one that runs.
func (r *running) becomes(set *manifest.Set) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set = set
}

// programs returns a stamp of each plugin's program. One that is being replaced has none.
func (r *running) programs() map[string]stamp {
	set, stamps := r.now(), map[string]stamp{}
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
