package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
)

// runner says how to run a module: in a process of this binary that is given the very bytes that were hashed. Compiled modules are
// kept beside the runtime directories of the cores, which survives them.
func (h *Host) runner(e *Entry, l Launch) (_ Launch, release func(), err error) {
	path := under(l.Dir, e.Wasm.Path)
	if err := readable(path); err != nil {
		return l, nil, err
	}
	s := spec.Spec{
		Module: path, File: e.Wasm.Path, Cache: filepath.Join(h.cfg.RuntimeDir, "wasm"),
		Memory: uint64(cmp.Or(e.Wasm.Memory, spec.DefaultMemory)), Instances: cmp.Or(e.Wasm.Instances, spec.DefaultInstances),
	}
	release = func() {}
	if e.Wasm.SHA256 != "" {
		if s.Module, release, err = pin(path, e.Wasm.SHA256); err != nil {
			return l, nil, err
		}
	}
	l.Path, l.Args, l.Env = h.cfg.Exe, s.Args(), h.tuned(e)
	return l, release, nil
}

func readable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("module %s does not exist; relative paths start at the directory of plugins.yaml", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("module %s is no file", path)
	}
	return nil
}

// allowed is what the entry grants; a module's may stand in either place.
func (e *Entry) allowed() *Allow {
	if e.Wasm != nil && e.Wasm.Allow != nil {
		return e.Wasm.Allow
	}
	return e.Allow
}

// grants is what a module was granted, for Hello; nothing for a process.
func grants(e *Entry) []byte {
	a := e.allowed()
	if e.Wasm == nil || a == nil {
		return nil
	}
	g := spec.Grants{Files: a.Files, Env: a.Env, Clock: a.Clock}
	for _, glob := range a.HTTP {
		g.HTTP = append(g.HTTP, string(glob))
	}
	text, err := json.Marshal(g)
	if err != nil {
		return nil // Strings and a bool can be encoded.
	}
	return text
}
