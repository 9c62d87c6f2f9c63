package host

import (
	"errors"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/host/cgroup"
)

// groups are the control groups of plugins with a limit of memory, where the core may make any. Without such plugins nothing is touched.
type groups struct {
	mu     sync.Mutex
	tree   *cgroup.Tree
	failed error
}

// group makes the control group of one start of an entry; nil where it has no limit, or there are no control groups. That is said once.
func (h *Host) group(s *slot) *cgroup.Group {
	limit := s.entry.Limits.Memory
	if limit == 0 {
		return nil
	}
	g, err := h.groups.make(s.entry.Name, uint64(limit))
	if err != nil && !errors.Is(err, errSaid) {
		h.cfg.Log.Info("memory is watched without control groups", "why", err)
	}
	return g
}

// errSaid is that there are no groups, which was said.
var errSaid = errors.New("no control groups")

func (g *groups) make(name string, limit uint64) (*cgroup.Group, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.failed != nil:
		return nil, errSaid
	case g.tree == nil:
		if g.tree, g.failed = ownTree(); g.failed != nil {
			return nil, g.failed
		}
	}
	return g.tree.Make(name, limit)
}

func ownTree() (*cgroup.Tree, error) {
	path, err := cgroup.Own()
	if err != nil {
		return nil, err
	}
	return cgroup.Open(path)
}

// close undoes what was made of the core's own group.
func (g *groups) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tree != nil {
		g.tree.Close()
	}
}
