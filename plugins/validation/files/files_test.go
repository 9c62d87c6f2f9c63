package files

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.yaml", "a/c.yml", ".git/x.yaml", "a/.hidden.yaml", "notes.txt"} {
		write(t, filepath.Join(dir, name), "a: 1\n")
	}
	got, err := Find([]string{filepath.Join(dir, "notes.txt"), dir})
	for i := range got {
		got[i], _ = filepath.Rel(dir, got[i])
	}
	if err != nil || !slices.Equal(got, []string{"notes.txt", "a/c.yml", "b.yaml"}) {
		t.Errorf("found %v, %v", got, err)
	}
	if _, err := Find([]string{filepath.Join(dir, "none")}); err == nil {
		t.Error("a path that is not there is an error")
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.yaml")
	write(t, path, "a: 1\n")
	if content, err := Read(path); err != nil || string(content) != "a: 1\n" {
		t.Errorf("%q, %v", content, err)
	}
	if err := os.Truncate(path, maxFile+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "larger than 32 MiB") {
		t.Errorf("%v", err)
	}
}
