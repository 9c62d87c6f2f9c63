package host

import (
	"fmt"
	"path/filepath"

	"github.com/coxswain-mesh/coxswain/core/host/sandbox"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// confine says what is taken from an entry's process.
func confine(e *manifest.Entry, l *Launch) {
	s := e.Sandbox
	if s == nil {
		return
	}
	rules := sandbox.Rules{Unconfined: s.Unconfined, Files: s.Read != nil || s.Write != nil, ReadAll: s.Read == nil}
	for _, path := range s.Read {
		rules.Read = append(rules.Read, filepath.Clean(manifest.Under(l.Dir, path)))
	}
	for _, path := range s.Write {
		rules.Write = append(rules.Write, filepath.Clean(manifest.Under(l.Dir, path)))
	}
	switch {
	case e.Process == nil && l.Program != nil: // the file that is open, whatever is at its path
		rules.Programs = []string{fmt.Sprintf("/proc/self/fd/%d", l.Program.Fd())}
	case l.Program == nil:
		rules.Programs = []string{l.Path}
	}
	l.Sandbox = rules
}
