package server

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

// TestLimitOf: the narrowest limit around counts.
func TestLimitOf(t *testing.T) {
	root := t.TempDir()
	write := func(at, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, at, "memory.max"), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a/b", "max")
	if most, limited := limitOf(root, "/a/b"); limited {
		t.Error(most)
	}
	write("a", "3000")
	write("a/b", "5000")
	if most, limited := limitOf(root, "/a/b"); !limited || most != 3000 {
		t.Error(most, limited)
	}
}

// TestUsedMemory: what is alive counts, garbage doesn't.
func TestUsedMemory(t *testing.T) {
	runtime.GC()
	before := usedMemory()
	alive := make([]byte, 64<<20)
	runtime.GC()
	with := usedMemory()
	runtime.KeepAlive(alive)
	alive = nil
	runtime.GC()
	after := usedMemory()
	if before == 0 || with < before+60<<20 || after > before+30<<20 {
		t.Error(before, with, after)
	}
	if DefaultMemory() < 64<<20 {
		t.Error(DefaultMemory())
	}
}

// TestDefaultMemory: half of what the machine has, or of what this process's group may have.
func TestDefaultMemory(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"a machine":      {map[string]string{"meminfo": "MemTotal: 8 kB\n"}, 4096},
		"a group":        {map[string]string{"meminfo": "MemTotal: 8 kB\n", "self/cgroup": "0::/a\n", "groups/a/memory.max": "1000\n"}, 500},
		"a wide group":   {map[string]string{"meminfo": "MemTotal: 8 kB\n", "self/cgroup": "0::/a\n", "groups/a/memory.max": "10000\n"}, 4096},
		"nothing known":  {nil, 0},
		"a group of old": {map[string]string{"meminfo": "MemTotal: 8 kB\n", "self/cgroup": "1:memory:/a\n", "groups/a/memory.max": "1000\n"}, 4096},
	} {
		dir := t.TempDir()
		for path, text := range c.files {
			path = filepath.Join(dir, path)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if got := defaultMemory(dir, filepath.Join(dir, "groups")); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}

// TestRelieving: revisions go once no view is left and clients are refused, and not before.
func TestRelieving(t *testing.T) {
	for _, c := range []struct{ views, short, revisions bool }{
		{true, true, false}, {true, false, false}, {false, false, false}, {false, true, true},
	} {
		went := false
		relieving(func(uint64) bool { return c.views }, func(uint64) { went = true })(1, c.short)
		if went != c.revisions {
			t.Errorf("views went: %v, memory is short: %v: revisions went: %v", c.views, c.short, went)
		}
	}
}
