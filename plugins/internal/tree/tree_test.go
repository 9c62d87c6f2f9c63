package tree

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func place(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLinksThatLeadTooFar: behind a link to more directories than anybody means to read nothing is
// read, and other links count.
func TestLinksThatLeadTooFar(t *testing.T) {
	root := t.TempDir()
	dir, far, near := filepath.Join(root, "dir"), filepath.Join(root, "far"), filepath.Join(root, "near")
	for i := range maxLinked + 10 {
		place(t, filepath.Join(far, fmt.Sprint(i), "far.yaml"))
	}
	place(t, filepath.Join(near, "below", "near.yaml"))
	place(t, filepath.Join(dir, "own.yaml"))
	for name, to := range map[string]string{"a-near": near, "far": far} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Walk{
		Visit: func(string) {}, Ignored: func(string) bool { return false },
		Wanted: func(name string) bool { return strings.HasSuffix(name, ".yaml") },
	}.Dir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, path := range slices.Sorted(maps.Keys(found.Files)) {
		rel, _ := filepath.Rel(dir, path)
		got = append(got, rel)
	}
	if want := []string{"a-near/below/near.yaml", "own.yaml"}; !slices.Equal(got, want) {
		t.Errorf("found %d: %v; want %v", len(got), got[:min(5, len(got))], want)
	}
	if unread := slices.Collect(maps.Keys(found.Unread)); !slices.Equal(unread, []string{filepath.Join(dir, "far")}) {
		t.Errorf("unread: %.300v", unread)
	}
	if found.Missing(filepath.Join(dir, "far", "1", "far.yaml")) {
		t.Error("what is behind the link counts as gone")
	}
}
