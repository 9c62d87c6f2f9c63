package swap

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestGaze: a file is read once it has stayed as it is from one look to the next, at the latest a
// second after it began to change, and now and then anyway.
func TestGaze(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plugins.yaml")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, "first")
	now := time.Now()
	g := poll{seen: statFile(path), read: now}
	look := func() bool {
		now = now.Add(pollEvery)
		return g.due(now, statFile(path))
	}
	changes := func(what string) {
		t.Helper()
		if look() {
			t.Errorf("%s: it is read at once", what)
		}
		if !look() {
			t.Errorf("%s: it is not read", what)
		}
		if look() {
			t.Errorf("%s: it is read again", what)
		}
	}
	for i := range 20 {
		write(filepath.Join(dir, "core.log"), strconv.Itoa(i))
		if look() {
			t.Fatal("another file counts")
		}
	}
	write(path, "another text")
	changes("written in place")
	write(path+"~", "another text")
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
	changes("replaced")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	changes("its directory is gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(path, "back")
	changes("its directory is back")

	// As Kubernetes mounts a ConfigMap: the file is a link through one of its directory's, which is
	// exchanged.
	for _, version := range []string{"..1", "..2"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(dir, version, "plugins.yaml"), "version"+version)
	}
	link := func(to, from string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, "new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", "..data")
	link("..data/plugins.yaml", "plugins.yaml")
	changes("a link")
	link("..2", "..data")
	changes("a link further up")

	read, began := 0, now
	for i := range int(10 * time.Second / pollEvery) { // it is written all the time
		write(path, "some text"+strconv.Itoa(i)+string(make([]byte, i)))
		if look() {
			read++
		}
	}
	if longest := now.Sub(began) / time.Duration(max(read, 1)); longest > waitAtMost+2*pollEvery {
		t.Errorf("it was read %d times in %v", read, now.Sub(began))
	}
	look()
	for range int(rereadEvery / pollEvery) {
		if look() {
			return
		}
	}
	t.Error("what shows no change is never read")
}
