package host

import (
	"errors"
	"fmt"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"os"
	"path/filepath"
	"strings"
)

// FilesEnv tells a process where the copies of its pinned files are.
const FilesEnv = "COXSWAIN_FILES"

// copies are a process's pinned files, in a private directory: what was hashed is what it reads,
// whatever becomes of the originals.
type copies struct {
	dir string
	// at has the copy of each file, by its path.
	at map[string]string
}

// copyFiles copies what an entry pins, beside each other as they are below dir. public lets other
// users read them.
func copyFiles(e *manifest.Entry, dir, private string, public bool) (*copies, error) {
	if e.Process == nil || len(e.Process.Files) == 0 {
		return &copies{}, nil
	}
	to, err := os.MkdirTemp(private, "files-")
	if err != nil {
		return nil, err
	}
	c := &copies{dir: to, at: map[string]string{}}
	mode := os.FileMode(0o400)
	if public {
		mode = 0o444
		err = os.Chmod(to, 0o755)
	}
	var from []string
	for _, f := range e.Process.Files {
		from = append(from, manifest.Under(dir, f.Path))
	}
	root := common(from)
	for i, f := range e.Process.Files {
		if err == nil {
			at := filepath.Join(to, strings.TrimPrefix(from[i], root))
			err = copyFile(at, from[i], f.SHA256, mode)
			c.at[from[i]] = at
		}
	}
	if err != nil {
		c.remove()
		return nil, err
	}
	return c, nil
}

// common is the deepest directory that all paths are below.
func common(paths []string) string {
	root := filepath.Dir(paths[0])
	for _, path := range paths {
		for root != "/" && !strings.HasPrefix(path, root+"/") {
			root = filepath.Dir(root)
		}
	}
	return root
}

func copyFile(to, from string, want manifest.Digest, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o711); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(copyPinned(f, from, want), f.Close()); err != nil {
		return err
	}
	return os.Chmod(to, mode)
}

func (c *copies) remove() {
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

// args are the arguments with the copies' paths in the place of the files': as a whole, after `=`,
// or in a list with `:`. unnamed are files that no argument names, and that lie beside none that
// does: the process may open the originals.
func (c *copies) args(args []string, dir string) (with, unnamed []string) {
	beside := map[string]bool{}
	for _, arg := range args {
		option, value, ok := strings.Cut(arg, "=")
		if ok {
			option += "="
		} else {
			option, value = "", arg
		}
		parts := strings.Split(value, ":")
		for i, part := range parts {
			path := manifest.Under(dir, part)
			if at, ok := c.at[filepath.Clean(path)]; ok {
				parts[i], beside[filepath.Dir(at)] = at, true
			}
		}
		with = append(with, option+strings.Join(parts, ":"))
	}
	for from, at := range c.at {
		if !c.below(beside, at) {
			unnamed = append(unnamed, from)
		}
	}
	return with, unnamed
}

// below reports whether a copy is in a directory of named ones, or below one.
func (c *copies) below(named map[string]bool, at string) bool {
	for dir := filepath.Dir(at); strings.HasPrefix(dir, c.dir); dir = filepath.Dir(dir) {
		if named[dir] {
			return true
		}
	}
	return false
}

// pinFiles gives a launch the copies of the entry's pinned files.
func pinFiles(s *slot, l *Launch, private string) (release func(), err error) {
	c, err := copyFiles(s.runs(), l.Dir, private, l.User != nil)
	if err != nil || c.dir == "" {
		return func() {}, err
	}
	var unnamed []string
	l.Args, unnamed = c.args(l.Args, l.Dir)
	l.Env = append(l.Env, FilesEnv+"="+c.dir)
	l.Sandbox.Own = append(l.Sandbox.Own, c.dir)
	for _, path := range unnamed {
		s.log.Warn("a pinned file was checked, but no argument names it: the program opens it by a path of its own, unless it looks in $"+FilesEnv,
			"file", path)
	}
	return c.remove, nil
}

// closedTo is the first directory, from dir up, that a user may not enter; empty: there is none.
func closedTo(dir string, uid, gid uint32, groups []uint32) string {
	for {
		info, err := os.Stat(dir)
		if err == nil && !mayEnter(info, uid, gid, groups) {
			return fmt.Sprintf("%s (mode %v)", dir, info.Mode().Perm())
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
