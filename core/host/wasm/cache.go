package wasm

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
)

// unused is how long a compiled module stays in the cache after it was written.
const unused = 30 * 24 * time.Hour

// openCache opens the directory of compiled modules. What lies in it is executed, so it is this
// user's alone; the host has checked who owns what is above it.
func openCache(dir string) (wazero.CompilationCache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	sweepCache(dir, time.Now().Add(-unused))
	return wazero.NewCompilationCacheWithDir(dir)
}

// sweepCache removes compiled modules that were written before a time; one that is still in use is
// compiled again once.
func sweepCache(dir string, before time.Time) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			_ = os.Remove(path)
		}
		return nil
	})
}
