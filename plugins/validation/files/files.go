// Package files finds and reads the files that commands are given.
package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFile is the size in bytes beyond which a file is refused, as config/file does.
const maxFile = 32 << 20

// Find returns the files that paths mean, in order: a file itself, and of a directory all .yaml,
// .yml and .json files below it, but hidden ones.
func Find(paths []string) ([]string, error) {
	var found []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			found = append(found, path)
			continue
		}
		below, err := walk(path)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return found, nil
}

func walk(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		hidden := path != dir && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return err
		case hidden && entry.IsDir():
			return fs.SkipDir
		case !hidden && !entry.IsDir() && isYAML(path):
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

func isYAML(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".yaml" || ext == ".yml" || ext == ".json"
}

// Read returns a file's content, unless it is too large.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("%s: larger than %d MiB", path, maxFile>>20)
	}
	return content, err
}
