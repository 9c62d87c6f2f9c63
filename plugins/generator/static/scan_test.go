package static

import (
	"os"
	"path/filepath"
	"testing"
)

// TestFolderComesBack: a folder that comes while the one above it begins to be watched, which may
// not see it then, is read.
func TestFolderComesBack(t *testing.T) {
	above := t.TempDir()
	c := &Config{Dir: filepath.Join(above, "resources")}
	file := filepath.Join(c.Dir, "a.yaml")
	found := c.scan(func(dir string) {
		if dir != above {
			return
		}
		if err := os.Mkdir(c.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if found.Files[file] == nil || len(found.Unread) > 0 {
		t.Errorf("files %v, not read %v", found.Files, found.Unread)
	}
}
