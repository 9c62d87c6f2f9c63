package wasm

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	"github.com/tetratelabs/wazero"
)

// grants are Grants made ready, and what was denied.
type grants struct {
	spec.Grants
	// warn says once what was denied.
	warn func(key, text string)
	// environ is the runner's environment.
	environ []string
	roots   []mount
	denied  sync.Map
}

// mount is a directory as the module sees it.
type mount struct {
	path string
	fs   fs.FS
}

// newGrants opens what is granted. warn logs a line.
func newGrants(encoded []byte, environ []string, warn func(string)) (*grants, error) {
	g := &grants{environ: environ}
	g.warn = func(key, text string) {
		if _, again := g.denied.LoadOrStore(key, true); !again {
			warn(text)
		}
	}
	if len(encoded) > 0 {
		if err := json.Unmarshal(encoded, &g.Grants); err != nil {
			return nil, fmt.Errorf("the grants in Hello: %w", err)
		}
	}
	for _, p := range g.HTTP {
		if _, err := parseTarget(p); err != nil {
			return nil, fmt.Errorf("allow.http: %w", err)
		}
	}
	if err := g.open(); err != nil {
		return nil, fmt.Errorf("allow.files: %w", err)
	}
	return g, nil
}

// open opens the granted files: a directory with all that is in it, of a file's directory that file
// alone.
func (g *grants) open() error {
	files := map[string]*some{}
	for _, entry := range g.Files {
		name := path.Clean(strings.TrimSuffix(entry, ":ro"))
		if !path.IsAbs(name) {
			return fmt.Errorf("%s: a path here is absolute, such as /etc/x:ro", entry)
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if info.IsDir() {
			root, err := os.OpenRoot(name)
			if err != nil {
				return err
			}
			g.roots = append(g.roots, mount{name, root.FS()})
			continue
		}
		dir := path.Dir(name)
		if files[dir] == nil {
			files[dir] = &some{dir: dir, names: map[string]bool{}, denied: g.deny}
			g.roots = append(g.roots, mount{dir, files[dir]})
		}
		files[dir].names[path.Base(name)] = true
	}
	if files["/"] == nil {
		g.roots = append(g.roots, mount{"/", &some{dir: "/", denied: g.deny}})
	}
	return nil
}

func (g *grants) deny(name string) {
	g.warn("file "+path.Dir(name),
		fmt.Sprintf("the module was refused the file %s; to grant it add to the entry in plugins.yaml: allow: {files: [%q]}", name, name+":ro"))
}

// mount gives a module its directories and variables. It returns the number of directories.
func (g *grants) mount(config wazero.ModuleConfig) (wazero.ModuleConfig, int) {
	dirs := wazero.NewFSConfig()
	for _, r := range g.roots {
		dirs = dirs.WithFSMount(r.fs, r.path)
	}
	for _, pair := range g.environ {
		if name, value, _ := strings.Cut(pair, "="); slices.Contains(g.Env, name) {
			config = config.WithEnv(name, value)
		}
	}
	return config.WithFSConfig(dirs), len(g.roots)
}

// some is a directory of which some files can be read, and nothing else, not even the list of its
// files.
type some struct {
	dir    string
	names  map[string]bool
	denied func(path string)
}

// Open implements fs.FS.
func (s *some) Open(name string) (fs.File, error) {
	switch {
	case name == ".":
		return emptyDir{}, nil
	case s.names[name]:
		return os.Open(path.Join(s.dir, name))
	}
	s.denied(path.Join(s.dir, name))
	return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
}
