package host

import (
	"fmt"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Exposed says where everybody may write to a file, or exchange it: whoever can that runs what he
// likes. Empty: nowhere, or nobody knows.
func Exposed(path string) (where []string) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	all := chain(path)
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		all = append(chain(real), all...)
	}
	for _, at := range all {
		info, err := os.Stat(at)
		if err != nil || info.Mode().Perm()&0o002 == 0 || info.IsDir() && info.Mode()&fs.ModeSticky != 0 || readOnly(at) {
			continue
		}
		if line := fmt.Sprintf("everybody may write to %s (mode %04o): chmod o-w %s", at, info.Mode().Perm(), at); !slices.Contains(where, line) {
			where = append(where, line)
		}
	}
	return where
}

// chain is a path and the directories that it is in.
func chain(path string) (all []string) {
	for ; ; path = filepath.Dir(path) {
		all = append(all, path)
		if path == filepath.Dir(path) {
			return all
		}
	}
}

// exposed says where everybody may write to what an entry runs.
func (ln *launcher) exposed(e *manifest.Entry) (where []string) {
	paths := ln.set.Programs(e)
	if e.Process != nil && !strings.Contains(e.Process.Command, "/") {
		if found, err := ln.find(e.Process.Command); err == nil {
			paths = append(paths, found)
		}
	}
	for _, path := range paths {
		for _, line := range Exposed(path) {
			if !slices.Contains(where, line) {
				where = append(where, line)
			}
		}
	}
	return where
}

// warnExposed notes, and says when it is new, that everybody may write to what the slot's entry
// runs.
func (h *Host) warnExposed(s *slot) {
	where := h.launcher.exposed(s.runs())
	s.mu.Lock()
	said := slices.Equal(s.status.Exposed, where)
	s.status.Exposed = where
	s.mu.Unlock()
	if !said && len(where) > 0 {
		s.log.Warn("others can change what the plugin runs", "where", strings.Join(where, "; "))
	}
}
