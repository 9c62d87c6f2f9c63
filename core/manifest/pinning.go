package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/replace"
)

// Pin writes into an entry the hashes of what it runs, as it is now: the program or module, and its
// files. dir is the directory of plugins.yaml; look finds a command without a slash, as
// exec.LookPath does.
func Pin(m Mapping, dir string, look func(command string) (string, error)) error {
	if m.Has("plugin") {
		return nil // whose digest its registry knows
	}
	if w, ok := m.At("wasm"); ok {
		m.Delete("insecure")
		return pinAt(w, "sha256", Under(dir, w.Text("path")))
	}
	p, ok := m.At("process")
	if !ok {
		return nil
	}
	for _, f := range p.Items("files") {
		if err := pinAt(f, "sha256", Under(dir, f.Text("path"))); err != nil {
			return err
		}
	}
	path := p.Text("command")
	if !strings.Contains(path, "/") {
		found, err := look(path)
		if err != nil {
			return err
		}
		path = found
	}
	m.Delete("insecure")
	return pinAt(m, "sha256", Under(dir, path))
}

func pinAt(m Mapping, key, path string) error {
	sum, err := Hash(path)
	if err != nil {
		return err
	}
	return m.Set(key, string(sum))
}

// Hash returns the digest of a file.
func Hash(path string) (Digest, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return Digest(hex.EncodeToString(sum.Sum(nil))), nil
}

// Write replaces a file in one step, with the mode that it has.
func Write(file string, text []byte) error {
	path, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return replace.File(path, text, info.Mode().Perm(), nil)
}

// Pinned reports whether the program's bytes are, or those of an artifact by whoever must have
// signed it; a built-in's are the core's own.
func (e *Entry) Pinned() bool {
	if d := e.Declaration(); d.Plugin != "" {
		return d.Plugin.Digest() != "" || d.Pull.Key != ""
	}
	return e.Process == nil && e.Wasm == nil || e.SHA256 != "" || e.Wasm != nil && e.Wasm.SHA256 != ""
}

// Trusted reports, as an error, whether nobody has said which bytes an entry's program is to have,
// nor that any will do.
func (e *Entry) Trusted() error {
	if e.Pinned() || e.Insecure {
		return nil
	}
	if e.Plugin != "" {
		return errors.New("nothing says which bytes its artifact is to have: `coxswain plugins pin` writes its digest into plugins.yaml; or name in " +
			"`pull.key` who must have signed it, or say `insecure: true`")
	}
	return errors.New("its program is not pinned: `coxswain plugins pin` writes its sha256 into plugins.yaml; or say `insecure: true` there")
}

// Under returns a path of the file, where relative ones are relative to its directory.
func Under(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
