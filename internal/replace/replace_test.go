package replace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	is := func(text string, mode fs.FileMode) {
		t.Helper()
		got, err := os.ReadFile(path)
		info, failed := os.Stat(path)
		if err = errors.Join(err, failed); err != nil || string(got) != text || info.Mode() != mode {
			t.Errorf("%q, %v, %v; want %q, %v", got, info, err, text, mode)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("left beside it: %v, %v", all, err)
		}
	}
	if err := File(path, []byte("one"), 0o644, nil); err != nil {
		t.Fatal(err)
	}
	is("one", 0o644)
	refused := errors.New("refused")
	err := File(path, []byte("two"), 0o600, func(f *os.File) error {
		if text, err := os.ReadFile(f.Name()); err != nil || string(text) != "two" {
			t.Errorf("before it takes its place it has %q, %v", text, err)
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Error(err)
	}
	is("one", 0o644)
	if err := File(path, []byte("two"), 0o600, nil); err != nil {
		t.Fatal(err)
	}
	is("two", 0o600)
	if err := File(filepath.Join(dir, "none", "a"), nil, 0o600, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := File(filepath.Join(dir, "folder"), nil, 0o600, nil); err == nil {
		t.Error("a folder was replaced")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("left beside it: %v, %v", all, err)
	}
}
