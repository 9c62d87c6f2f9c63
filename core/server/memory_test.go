package server

import (
	"os"
	"path/filepath"
	"testing"
)

// The narrowest limit counts, of the process's own cgroup or of one around it.
func TestLeftOf(t *testing.T) {
	root := t.TempDir()
	put := func(dir, most, used string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"memory.max": most, "memory.current": used} {
			if err := os.WriteFile(filepath.Join(root, dir, name), []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("a", "1000", "400")
	put("a/core", "max", "300")
	put("a/tight", "500", "450")
	put("b", "max", "1")
	put("c", "100", "200")
	for path, want := range map[string]uint64{"/a": 600, "/a/core": 600, "/a/tight": 50, "/c": 0} {
		if left, limited := leftOf(root, path); left != want || !limited {
			t.Errorf("%s: %d %v, want %d", path, left, limited, want)
		}
	}
	if left, limited := leftOf(root, "/b"); limited {
		t.Errorf("/b is limited to %d", left)
	}
}
