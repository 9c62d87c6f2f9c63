package seen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Look says what this version would make of what another core keeps in a directory. The error is
// why it would be set aside; a directory without such a file is nothing to say of.
func Look(dir string) (found string, err error) {
	s := New()
	s.path = filepath.Join(dir, FileName)
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := s.read(f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s knows %d objects", s.path, len(s.rows)), nil
}
