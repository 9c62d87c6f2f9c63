package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coxswain-mesh/coxswain/core/host/process"
	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// runner says how to run a module: in a process of this binary that is given the very bytes that
// were hashed. Compiled modules are kept beside the runtime directories of the cores, which
// survives them.
func (ln *launcher) runner(e *manifest.Entry, l Launch) (_ Launch, release func(), err error) {
	path := manifest.Under(l.Dir, e.Wasm.Path)
	if err := readable(path); err != nil {
		return l, nil, err
	}
	module, err := ln.module(e, path)
	if err != nil {
		return l, nil, err
	}
	s := spec.Spec{
		Module: module.path, File: e.Wasm.Path, Cache: filepath.Join(ln.runtimeDir, "wasm"),
		Memory: uint64(cmp.Or(e.Wasm.Memory, spec.DefaultMemory)), Instances: cmp.Or(e.Wasm.Instances, spec.DefaultInstances),
	}
	l.Path, l.Program = ln.exe, ln.self
	if module.file != nil {
		l.Files, s.Module = []*os.File{module.file}, process.Inherited(0, l.Program != nil)
	}
	l.Args, l.Env = s.Args(), ln.tuned(e)
	return l, module.release, nil
}

// module is what a runner reads: it is opened once, here.
func (ln *launcher) module(e *manifest.Entry, path string) (loaded, error) {
	if e.Wasm.SHA256 != "" {
		return pin(path, e.Wasm.SHA256)
	}
	return opened(path)
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

// grants is what a module was granted, for Hello; nothing for a process.
func grants(e *manifest.Entry) []byte {
	a := e.Allowed()
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
